// Denormal numbers, below 1e-38, take processors up to a hundred times as long as others, and no training needs them.
// They appear where gradients have become zero, as Adam's averages decay.
#pragma once

#include <cstdint>

namespace lockstep::base {

/// While it lives, arithmetic on this thread takes denormal numbers as zero and gives zero for them.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t before_;
};

/// The same for the rest of the thread's life.
void flush_denormals_for_good();

}  // namespace lockstep::base
