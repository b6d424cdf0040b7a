#include "observe/tensorboard/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep::observe {
namespace {

constexpr size_t kMostSeen = 65536;
constexpr float kMost = std::numeric_limits<float>::max();

// Values in a bucket share sign, exponent and the first three bits of the fraction.
constexpr uint32_t kShift = 20;
constexpr uint32_t bucket_bits(float magnitude) { return std::bit_cast<uint32_t>(magnitude) >> kShift; }
constexpr uint32_t kLow = bucket_bits(0x1p-40F);  ///< first bucket beyond the one around zero
constexpr uint32_t kSide = bucket_bits(kMost) - kLow + 1;
constexpr size_t kZero = kSide;
constexpr size_t kBuckets = 2UL * kSide + 1;

size_t bucket_of(float value) {
  const uint32_t bits = bucket_bits(std::fabs(value));
  if (bits < kLow) return kZero;
  return value < 0 ? kZero - 1 - (bits - kLow) : kZero + 1 + (bits - kLow);
}

/// Returns the lower limit of the bucket of these bits.
double lower(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 3U) - 127;
  return std::ldexp(1.0 + (bits & 7U) / 8.0, exponent);
}

double upper_limit(size_t bucket) {
  const auto place = static_cast<uint32_t>(bucket);
  if (bucket < kZero) return -lower(kLow + static_cast<uint32_t>(kZero) - 1 - place);
  return lower(kLow + place - static_cast<uint32_t>(kZero));
}

/// Finds the range of all values; NaN never wins a comparison.
void find_range(std::span<const float> values, Histogram& histogram) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> low;
  std::array<float, kLanes> high;
  low.fill(kMost);
  high.fill(-kMost);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      low[k] = values[i + k] < low[k] ? values[i + k] : low[k];
      high[k] = values[i + k] > high[k] ? values[i + k] : high[k];
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = values[i] < low[0] ? values[i] : low[0];
    high[0] = values[i] > high[0] ? values[i] : high[0];
  }
  histogram.min = std::max(*std::min_element(low.begin(), low.end()), -kMost);
  histogram.max = std::min(*std::max_element(high.begin(), high.end()), kMost);
}

void fill_buckets(const std::array<uint32_t, kBuckets>& counts, double each, Histogram& histogram) {
  const auto filled = [](uint32_t count) { return count > 0; };
  const auto first = static_cast<size_t>(std::find_if(counts.begin(), counts.end(), filled) - counts.begin());
  const auto end = static_cast<size_t>(counts.rend() - std::find_if(counts.rbegin(), counts.rend(), filled));
  for (size_t i = first; i < end; ++i) {
    if (counts[i] == 0 && counts[i - 1] == 0) {
      histogram.limits.back() = upper_limit(i);
      continue;
    }
    histogram.limits.push_back(upper_limit(i));
    histogram.counts.push_back(counts[i] * each);
  }
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  // An odd stride covers all columns of a matrix whose rows have an even length.
  const size_t stride = values.size() <= kMostSeen ? 1 : ((values.size() + kMostSeen - 1) / kMostSeen) | 1U;
  std::array<uint32_t, kBuckets> counts{};
  uint64_t seen = 0;
  uint64_t numbers = 0;
  Histogram histogram;
  for (size_t i = 0; i < values.size(); i += stride, ++seen) {
    if (std::isnan(values[i])) continue;
    const float value = std::clamp(values[i], -kMost, kMost);
    ++numbers;
    ++counts[bucket_of(value)];
    histogram.sum += value;
    histogram.sum_squares += static_cast<double>(value) * value;
  }
  if (numbers == 0) return histogram;
  find_range(values, histogram);
  const double each = static_cast<double>(values.size()) / static_cast<double>(seen);
  histogram.num = static_cast<double>(numbers) * each;
  histogram.sum *= each;
  histogram.sum_squares *= each;
  fill_buckets(counts, each, histogram);
  return histogram;
}

}  // namespace lockstep::observe
