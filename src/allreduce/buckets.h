// How the gradients of a step are cut into buckets, and which of them are complete. Buckets go from the end of the
// parameter buffer to its beginning, as the backward pass announces gradients; what is left over makes the last one
// small, for which everyone waits. Plain values; allocates when it is made only.
#pragma once

#include <cstddef>
#include <vector>

#include "program/program.h"

namespace lockstep::allreduce {

class Buckets {
 public:
  /// `bytes` are of float32, and are cut to whole cache lines.
  Buckets(size_t count, size_t bytes);

  [[nodiscard]] size_t size() const { return missing_.size(); }  ///< at least 1, which may be empty
  [[nodiscard]] program::ParameterRange range(size_t i) const;

  /// A new step: nothing is announced.
  void begin();
  /// These gradients are final; each element once, in any order. Gives how many further buckets, in their order, are
  /// complete now with all before them. Throws UsageError for elements that are not there, or for more than a bucket
  /// has.
  size_t announced(program::ParameterRange range);

 private:
  [[nodiscard]] size_t bucket_of(size_t element) const { return (top_ - 1 - element) / each_; }

  size_t count_;
  size_t each_;                  ///< elements per bucket
  size_t top_;                   ///< the end of the first bucket, beyond the elements by less than a cache line
  std::vector<size_t> missing_;  ///< elements of each bucket that are not announced
  size_t complete_ = 0;
};

}  // namespace lockstep::allreduce
