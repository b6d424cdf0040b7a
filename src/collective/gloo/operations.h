// The operations of a group over its links. Internal. The thread rules of links.h hold; failures are LinkErrors.
//
// Every element is summed in the order of ranks, whatever the way: small vectors go from everyone to everyone; larger
// ones are cut into pieces, each member sums its share of the pieces and sends the sums to everyone. That moves as few
// bytes as a ring does, with two waits instead of 2 (size - 1), and pieces follow each other without waiting.
#pragma once

#include "collective/gloo/links.h"

namespace lockstep::collective::gloo_engine {

void all_reduce(Links& links, std::span<std::byte> data, Element element);
void broadcast(Links& links, std::span<std::byte> data, int root);
void all_gather(Links& links, std::span<const std::byte> mine, std::span<std::byte> all);
void barrier(Links& links);

}  // namespace lockstep::collective::gloo_engine
