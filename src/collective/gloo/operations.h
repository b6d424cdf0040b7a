// The operations of a group over its links. Internal. The thread rules of links.h hold; failures are LinkErrors.
//
// Up to schedule::kAllReduceMesh members each is connected with all others. All elements are summed in the order of
// ranks in every method, so all methods give the same bits:
//   two members       each sends everything to the other
//   small vectors     the same; where members share cores, rank 0 sums and sends the sum back
//   larger ones       each member sums its share and sends it to everyone: as few bytes as in a ring, but two waits
//                     instead of 2 (size - 1); rounds of shares follow each other without waiting
//
// In larger groups each member is connected with those whose rank differs in one bit, and the steps of
// schedule/all_reduce_steps.h are run: small vectors go through a tree, larger ones by halves. The order of additions
// depends on the size of the vector and the group.
#pragma once

#include "collective/gloo/links.h"

namespace lockstep::collective::gloo_engine {

void all_reduce(Links& links, std::span<std::byte> data, Element element);
void broadcast(Links& links, std::span<std::byte> data, int root);
void all_gather(Links& links, std::span<const std::byte> mine, std::span<std::byte> all);
void barrier(Links& links);

}  // namespace lockstep::collective::gloo_engine
