#include "schedule/all_reduce_way.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "schedule/all_reduce_steps.h"

namespace lockstep::schedule {
namespace {

/// Up to this size, sending everything at once is faster than sending shares. If members share cores, only the number
/// of messages matters, and summing on rank 0 needs the fewest.
constexpr size_t kSmall = 16 * 1024;
constexpr size_t kSmallWhenCrowded = 256 * 1024;

/// What rank 0 moves through the tree: it does most.
AllReduceVolume volume_of_tree(double bytes, size_t members) {
  const double pieces = std::ceil(bytes / kAllReducePiece);
  const double levels = std::bit_width(members - 1);
  return {bytes * levels, 2 * levels * pieces, 2 * levels, 1 - 1 / pieces};
}

/// What a rank of the power of two moves that also serves one outside of it, if there are such.
AllReduceVolume volume_by_halves(double bytes, size_t members) {
  const size_t inner = std::bit_floor(members);
  AllReduceVolume volume;
  double pieces = 0;
  for (size_t part = 2; part <= inner; part *= 2)
    pieces += 2 * std::ceil(bytes / static_cast<double>(part) / kAllReducePiece);
  volume.turns = 2 * std::log2(static_cast<double>(inner));
  volume.sent = 2 * bytes * static_cast<double>(inner - 1) / static_cast<double>(inner);
  if (inner < members) {
    volume.turns += 2;
    volume.sent += bytes;
    pieces += std::ceil(bytes / kAllReducePiece);
  }
  volume.messages = 2 * pieces;
  volume.overlaps = std::max(0.0, 1 - volume.turns / pieces);
  return volume;
}

}  // namespace

AllReduceWay all_reduce_way(size_t bytes, size_t members, bool crowded) {
  if (members == 2) return AllReduceWay::exchange_all;
  const bool small = bytes <= (crowded ? kSmallWhenCrowded : kSmall);
  if (members > kAllReduceMesh) return small ? AllReduceWay::through_tree : AllReduceWay::by_halves;
  if (!small) return AllReduceWay::in_shares;
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
  if (way == AllReduceWay::through_tree) return volume_of_tree(all, members);
  if (way == AllReduceWay::by_halves) return volume_by_halves(all, members);
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
