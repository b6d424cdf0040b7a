#include "schedule/all_reduce_steps.h"

#include <algorithm>
#include <bit>

namespace lockstep::schedule {
namespace {

constexpr Shares kNone{};
constexpr Shares kWhole{0, 1};

/// Returns the rank before this one on the way to rank 0: without its lowest bit.
int parent_of(int rank) { return rank & (rank - 1); }

/// Returns the number of ranks from this one that are below it in the tree, itself included, in a full tree.
int span_of(int rank, int size) {
  return rank == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) : rank & -rank;
}

std::vector<int> children_of(int rank, int size) {
  std::vector<int> children;
  for (int bit = 1; bit < span_of(rank, size) && rank + bit < size; bit *= 2) children.push_back(rank + bit);
  return children;
}

/// Returns the neighbour in the tree that is nearer to `root`, another rank.
int towards(int root, int rank, int size) {
  for (const int child : children_of(rank, size)) {
    if (root >= child && root < child + span_of(child, size)) return child;
  }
  return parent_of(rank);
}

}  // namespace

std::vector<int> all_reduce_neighbours(int rank, int size) {
  std::vector<int> neighbours;
  for (int other = 0; other < size; ++other) {
    const bool near = size <= kAllReduceMesh || std::has_single_bit(static_cast<unsigned>(rank ^ other));
    if (other != rank && near) neighbours.push_back(other);
  }
  return neighbours;
}

std::vector<Step> sum_through_tree(int rank, int size) {
  std::vector<Step> steps;
  const std::vector<int> children = children_of(rank, size);
  for (const int child : children) steps.push_back({child, kNone, kWhole, true});
  if (rank != 0) {
    steps.push_back({parent_of(rank), kWhole, kNone, true});
    steps.push_back({parent_of(rank), kNone, kWhole, false});
  }
  // The child with most below it comes first.
  for (size_t i = children.size(); i-- > 0;) steps.push_back({children[i], kWhole, kNone, false});
  return steps;
}

size_t shares_by_halves(int size) { return std::bit_floor(static_cast<size_t>(size)); }

std::vector<Step> sum_by_halves(int rank, int size) {
  const size_t all = shares_by_halves(size);
  const auto inner = static_cast<int>(all);
  const Shares whole{0, all};
  if (rank >= inner) return {{rank - inner, whole, kNone, true}, {rank - inner, kNone, whole, false}};
  std::vector<Step> steps;
  const bool has_outer = rank + inner < size;
  if (has_outer) steps.push_back({rank + inner, kNone, whole, true});
  Shares mine = whole;
  for (int bit = inner / 2; bit > 0; bit /= 2) {
    const size_t middle = (mine.begin + mine.end) / 2;
    const Shares lower{mine.begin, middle};
    const Shares upper{middle, mine.end};
    const bool low = (rank & bit) == 0;
    steps.push_back({rank ^ bit, low ? upper : lower, low ? lower : upper, true});
    mine = low ? lower : upper;
  }
  for (int bit = 1; bit < inner; bit *= 2) {
    const size_t width = mine.end - mine.begin;
    const bool low = (rank & bit) == 0;
    const Shares other = low ? Shares{mine.end, mine.end + width} : Shares{mine.begin - width, mine.begin};
    steps.push_back({rank ^ bit, mine, other, false});
    mine = {std::min(mine.begin, other.begin), std::max(mine.end, other.end)};
  }
  if (has_outer) steps.push_back({rank + inner, whole, kNone, false});
  return steps;
}

std::vector<Step> broadcast_through_tree(int rank, int size, int root) {
  std::vector<Step> steps;
  std::vector<int> next = children_of(rank, size);
  if (rank != 0) next.push_back(parent_of(rank));
  if (rank != root) {
    const int from = towards(root, rank, size);
    std::erase(next, from);
    steps.push_back({from, kNone, kWhole, false});
  }
  for (size_t i = next.size(); i-- > 0;) steps.push_back({next[i], kWhole, kNone, false});
  return steps;
}

std::vector<Step> gather_by_doubling(int rank, int size) {
  const auto count = static_cast<size_t>(size);
  const size_t inner = shares_by_halves(size);
  const auto me = static_cast<size_t>(rank);
  const auto own = [](size_t which) { return Shares{which, which + 1}; };
  if (me >= inner) {
    const int peer = rank - static_cast<int>(inner);
    return {{peer, own(me), kNone, false}, {peer, kNone, {0, count}, false}};
  }
  std::vector<Step> steps;
  const int outer = static_cast<int>(me + inner);
  if (outer < size) steps.push_back({outer, kNone, own(me + inner), false});
  // Before a step, this member has the shares of `width` ranks and of the outer ones that belong to them.
  for (size_t width = 1; width < inner; width *= 2) {
    const size_t mine = me / width * width;
    const size_t other = mine ^ width;
    const auto outer_of = [&](size_t from) {
      return Shares{std::min(count, inner + from), std::min(count, inner + from + width)};
    };
    const int peer = static_cast<int>(me ^ width);
    steps.push_back({peer, {mine, mine + width}, {other, other + width}, false});
    if (!outer_of(mine).empty() || !outer_of(other).empty()) {
      steps.push_back({peer, outer_of(mine), outer_of(other), false});
    }
  }
  if (outer < size) steps.push_back({outer, {0, count}, kNone, false});
  return steps;
}

}  // namespace lockstep::schedule
