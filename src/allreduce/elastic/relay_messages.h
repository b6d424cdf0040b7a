// Frames of the relay: as protocol buffers and back. Those from the network are checked here: invalid ones are a
// DataError, and decoded ones name only existing members. Free functions; any thread.
#pragma once

#include <string>

#include "allreduce/elastic/messages.h"
#include "allreduce/elastic/relay.h"

namespace lockstep::allreduce::elastic {

Kind kind_of(const RelayFrame& frame);
std::string encode(const RelayFrame& frame);
/// Decodes a frame that the neighbour `from` has sent, in a cluster of `members`.
RelayFrame decode_relayed(Kind kind, const std::string& bytes, int from, int members);

}  // namespace lockstep::allreduce::elastic
