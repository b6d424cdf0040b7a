// How an all-reduce over TCP moves its bytes, by its size and the number of members: decided here for the engine and
// for its model. Free functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::schedule {

enum class AllReduceWay : uint8_t {
  exchange_all,  ///< every member sends everything to all others
  through_root,  ///< everything is summed on rank 0 and sent back
  in_shares,     ///< every member sums its share and sends it to all others
  // In groups whose members are not connected with all others (all_reduce_steps.h):
  through_tree,  ///< everything is summed up a tree and sent down again
  by_halves      ///< pairs exchange halves of the data, then halves of these, and so on
};

/// Bytes of a piece, of which some are on the way at a time.
inline constexpr size_t kAllReducePiece = 128 * 1024;
/// Bytes that each member sends to another in a round of a sum in shares that takes several rounds.
inline constexpr size_t kAllReduceQuarter = 80 * 1024;

/// `crowded`: members share cores, so that only the number of messages matters
AllReduceWay all_reduce_way(size_t bytes, size_t members, bool crowded);

/// Returns the number of rounds of a sum in shares.
size_t all_reduce_rounds(size_t bytes, size_t members);

/// What a member sends in an all-reduce; it receives as much.
struct AllReduceVolume {
  double sent = 0;      ///< bytes
  double messages = 0;  ///< sent and received
  double turns = 0;     ///< messages one after the other that a member waits for at least
  double overlaps = 0;  ///< share of the work on messages that is done while others are on the way
};
AllReduceVolume all_reduce_volume(size_t bytes, size_t members, bool crowded);

}  // namespace lockstep::schedule
