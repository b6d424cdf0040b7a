#include "schedule/all_reduce_way.h"

#include <algorithm>

namespace lockstep::schedule {
namespace {

/// Up to this size, sending everything at once is faster than sending shares. If members share cores, only the number
/// of messages matters, and summing on rank 0 needs the fewest.
constexpr size_t kSmall = 16 * 1024;
constexpr size_t kSmallWhenCrowded = 256 * 1024;

}  // namespace

AllReduceWay all_reduce_way(size_t bytes, size_t members, bool crowded) {
  if (members == 2) return AllReduceWay::exchange_all;
  if (bytes > (crowded ? kSmallWhenCrowded : kSmall)) return AllReduceWay::in_shares;
  return crowded ? AllReduceWay::through_root : AllReduceWay::exchange_all;
}

size_t all_reduce_rounds(size_t bytes, size_t members) {
  if (bytes <= members * kAllReducePiece) return 1;
  return (bytes + members * kAllReduceQuarter - 1) / (members * kAllReduceQuarter);
}

AllReduceVolume all_reduce_volume(size_t bytes, size_t members, bool crowded) {
  if (bytes == 0 || members < 2) return {};
  const auto all = static_cast<double>(bytes);
  const auto others = static_cast<double>(members - 1);
  const AllReduceWay way = all_reduce_way(bytes, members, crowded);
  if (way == AllReduceWay::in_shares) {
    const auto rounds = static_cast<double>(all_reduce_rounds(bytes, members));
    return {2 * all * others / static_cast<double>(members), 4 * others * rounds, 2, 1 - 1 / rounds};
  }
  const auto pieces = static_cast<double>((bytes + kAllReducePiece - 1) / kAllReducePiece);
  const double hidden = 1 - 1 / pieces;
  if (way == AllReduceWay::exchange_all) return {all * others, 2 * others * pieces, 1, hidden};
  return {all * others, 2 * others * pieces, 2, hidden};  // of rank 0, which does most
}

}  // namespace lockstep::schedule
