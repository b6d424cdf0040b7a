// Cuts the gradients of a step into buckets and tracks which are complete. Buckets go from the end of the parameter
// buffer to its beginning, in the order of the backward pass. The rest makes the last bucket, which all wait for, the
// small one. Plain values; allocates only when constructed.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/range.h"

namespace lockstep::schedule {

class Buckets {
 public:
  /// `bytes`: size in float32, rounded to whole cache lines
  Buckets(size_t count, size_t bytes);

  [[nodiscard]] size_t size() const { return missing_.size(); }  ///< at least 1, possibly empty
  [[nodiscard]] ParameterRange range(size_t i) const;

  /// Begins a step: no gradient is announced.
  void begin();
  /// Records final gradients; each element once, in any order. Returns how many more buckets are now complete, counting
  /// in order and with all before them. Throws UsageError for elements out of range or announced twice.
  size_t announced(ParameterRange range);

 private:
  [[nodiscard]] size_t bucket_of(size_t element) const { return (top_ - 1 - element) / each_; }

  size_t count_;
  size_t each_;                  ///< elements per bucket
  size_t top_;                   ///< end of the first bucket, less than a cache line beyond the elements
  std::vector<size_t> missing_;  ///< elements of each bucket not yet announced
  size_t complete_ = 0;
};

}  // namespace lockstep::schedule
