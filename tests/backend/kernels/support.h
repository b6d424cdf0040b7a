// Parts that the kernel tests share: seeded values in guarded buffers, and a comparison that allows for rounding.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"

namespace lockstep::backend::cpu {

/// Floats between two fences. The destructor fails the test if a fence was overwritten. The data is 64-byte aligned, as
/// scratch must be, or shifted by `shift` floats.
class Buffer {
 public:
  explicit Buffer(int64_t size, int64_t shift = 0)
      : size_(size), storage_(static_cast<size_t>(size + shift + 3 * kFence), kMark) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    begin_ = static_cast<int64_t>((64 - address % 64) % 64 / sizeof(float)) + kFence + shift;
    for (int64_t i = 0; i < size_; ++i) (*this)[i] = 0.0F;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    for (size_t i = 0; i < storage_.size(); ++i) {
      const bool inside = static_cast<int64_t>(i) >= begin_ && static_cast<int64_t>(i) < begin_ + size_;
      if (!inside && storage_[i] != kMark) {
        ADD_FAILURE() << "a kernel wrote " << static_cast<int64_t>(i) - begin_ << " of a buffer of " << size_;
        return;
      }
    }
  }

  float* data() { return storage_.data() + begin_; }
  float& operator[](int64_t i) { return data()[i]; }
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  static constexpr int64_t kFence = 64;
  static constexpr float kMark = -12345.678F;
  int64_t size_;
  int64_t begin_ = 0;
  std::vector<float> storage_;
};

/// Values in [low, high).
inline Buffer random_buffer(int64_t size, uint64_t seed, float low = -1.0F, float high = 1.0F, int64_t shift = 0) {
  Buffer buffer(size, shift);
  base::Sequence random(seed, 1);
  for (int64_t i = 0; i < size; ++i) buffer[i] = low + (high - low) * random.uniform();
  return buffer;
}

/// A sum in double with the sum of its terms' magnitudes, which bounds the rounding of any order of summation.
struct Reference {
  double value = 0;
  double magnitude = 0;

  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

inline void expect_close(float seen, const Reference& expected, const char* what, int64_t index) {
  EXPECT_NEAR(seen, expected.value, 1e-6 + 2e-6 * expected.magnitude) << what << " at " << index;
}

/// `seen` equals `expected` within a relative error.
inline void expect_relative(double seen, double expected, double relative, const char* what, double argument) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(seen)) << what << " of " << argument;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(seen, expected) << what << " of " << argument;
  } else {
    EXPECT_NEAR(seen, expected, relative * std::abs(expected) + std::numeric_limits<float>::min())
        << what << " of " << argument;
  }
}

}  // namespace lockstep::backend::cpu
