// How the members of a large group work together when each is connected with few others: rank r only with the ranks
// whose number differs from r in one bit, so with at most log2(size) rounded up. Each operation is a list of steps for
// each rank, one after the other; a step moves data between two of them. The lists of two members fit each other for
// any size. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::schedule {

/// Up to this many members, each is connected with all others, and these steps are not used.
inline constexpr int kAllReduceMesh = 8;

/// Some of the equal shares into which the steps of an operation divide its data: [begin, end).
struct Shares {
  size_t begin = 0;
  size_t end = 0;

  [[nodiscard]] bool empty() const { return begin >= end; }
  friend bool operator==(const Shares&, const Shares&) = default;
};

/// Sends `out` to a peer and receives `in` from it, at the same time. Either may be empty.
struct Step {
  int peer = 0;
  Shares out;
  Shares in;
  bool adds = false;  ///< the receiver adds to what it has; else it replaces it

  friend bool operator==(const Step&, const Step&) = default;
};

/// Returns the ranks that a member is connected with, ascending.
std::vector<int> all_reduce_neighbours(int rank, int size);

/// A sum of one share: up a tree to rank 0 and down again. The fewest messages.
std::vector<Step> sum_through_tree(int rank, int size);

/// Returns the number of shares of a sum by halves: the largest power of two up to `size`.
size_t shares_by_halves(int size);
/// A sum of that many shares. Pairs exchange halves of the data, then halves of these, until each member of a power of
/// two has the sum of its share; then back. The other members hand all their data to one of them before, and get the
/// sum after that. The fewest bytes.
std::vector<Step> sum_by_halves(int rank, int size);

/// Sends one share of `root` to all members, along the tree.
std::vector<Step> broadcast_through_tree(int rank, int size, int root);

/// Gathers `size` shares, one of each rank.
std::vector<Step> gather_by_doubling(int rank, int size);

}  // namespace lockstep::schedule
