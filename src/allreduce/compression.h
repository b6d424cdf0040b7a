// Top-k with error feedback: of each bucket a member sends only the elements that are largest in magnitude, as pairs of
// index and value, and keeps the rest to add to the next step's gradients, so that nothing is lost, only late. Members
// choose different elements, so the pairs are gathered and added up by everyone in the order of ranks. Exact and
// deterministic: among equals the lowest index goes first; a NaN counts as the largest, so that it is seen by all.
// One thread at a time.
//
// The errors belong to the member and its group. When the group changes they must be forgotten with `reset`: after a
// step that failed, the same examples are computed again, and what the failed attempt left behind would count twice; a
// member that takes over another's state has errors of other parameters than those it goes on from. The price is that
// what was held back then is lost, once per change of the group: a small part of each of the last 1 / share steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::allreduce {

/// An element on its way; as bytes in the order of this machine.
struct SparseElement {
  uint32_t index = 0;  ///< in the bucket
  float value = 0;
};
static_assert(sizeof(SparseElement) == 8);

class TopK {
 public:
  /// For a gradient buffer of `count` floats; `share` of each bucket is sent, in (0, 1].
  TopK(size_t count, double share);

  /// Elements of a bucket of `count` that are sent: at least one, unless it is empty.
  [[nodiscard]] size_t kept(size_t count) const;
  /// Chooses from the bucket of these gradients, which begins at `offset`, what to send, by ascending index; `to` has
  /// room for kept(gradients.size()). The rest is kept.
  void select(size_t offset, std::span<const float> gradients, std::span<SparseElement> to);
  /// Forgets what was not sent.
  void reset();
  [[nodiscard]] std::span<const float> errors() const { return errors_; }

 private:
  void take_in(std::span<const float> gradients, std::span<float> errors);

  double share_;
  std::vector<float> errors_;
  std::vector<uint32_t> bins_;
};

/// to = the sum of everyone's elements, in the order in which they lie. Throws DataError for an index beyond `to`.
void add_up(std::span<const SparseElement> everyones, std::span<float> to);

}  // namespace lockstep::allreduce
