// Top-k with error feedback. A member sends only the elements of each bucket that are largest in magnitude, as pairs of
// index and value. It adds the rest to the next step's gradients, so nothing is lost, only late. Members choose
// different elements, so every member gathers all pairs and sums them in the order of ranks. Exact and deterministic:
// among equals the lowest index comes first; a NaN counts as the largest, so that all see it. One thread at a time.
//
// The errors belong to the member and its group; call `reset` when the group changes. After a failed step the same
// examples are computed again, and the errors of the failed attempt would count twice. A member that takes over
// another's state has errors of other parameters. The price: each change of the group loses the elements held back, a
// small part of each of the last 1 / share steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::allreduce {

/// An element in flight, as bytes in this machine's order.
struct SparseElement {
  uint32_t index = 0;  ///< index in the bucket
  float value = 0;
};
static_assert(sizeof(SparseElement) == 8);

class TopK {
 public:
  /// For a gradient buffer of `count` floats. Sends `share` of each bucket, in (0, 1].
  TopK(size_t count, double share);

  /// Returns how many elements of a bucket of `count` are sent: at least one, unless it is empty.
  [[nodiscard]] size_t kept(size_t count) const;
  /// Selects the elements to send from a bucket's gradients, which begin at `offset`, by ascending index. `to` has room
  /// for kept(gradients.size()). Keeps the rest.
  void select(size_t offset, std::span<const float> gradients, std::span<SparseElement> to);
  /// Forgets the elements that were not sent.
  void reset();
  [[nodiscard]] std::span<const float> errors() const { return errors_; }

 private:
  void take_in(std::span<const float> gradients, std::span<float> errors);

  double share_;
  std::vector<float> errors_;
  std::vector<uint32_t> bins_;
};

/// Sets `to` to the sum of all members' elements, in the order of `everyones`. Throws DataError for an index beyond
/// `to`.
void add_up(std::span<const SparseElement> everyones, std::span<float> to);

}  // namespace lockstep::allreduce
