#include "allreduce/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lockstep/error.h"

namespace lockstep::allreduce {
namespace {

/// Orders like the absolute value, with NaN above infinity.
uint32_t magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffU; }

// Two passes find the k-th largest magnitude: first its leading bits, then its last ones.
constexpr int kLastBits = 15;
constexpr uint32_t kLastMask = (1U << kLastBits) - 1;
constexpr size_t kBins = size_t{1} << (31 - kLastBits);
/// Elements checked together; few of them are wanted.
constexpr size_t kBlock = 16;

/// Calls take(i, magnitude) for the elements with magnitudes in [low, high], in order.
template <class Take>
void for_each_between(std::span<const float> values, uint32_t low, uint32_t high, const Take& take) {
  const auto look = [&](size_t i) {
    const uint32_t bits = magnitude(values[i]);
    if (bits - low <= high - low) take(i, bits);
  };
  size_t begin = 0;
  for (; begin + kBlock <= values.size(); begin += kBlock) {
    // Magnitudes fit into signed numbers, which every instruction set can compare.
    int32_t any = 0;
    for (size_t i = begin; i < begin + kBlock; ++i) {
      const auto bits = static_cast<int32_t>(magnitude(values[i]));
      any |= static_cast<int32_t>(bits >= static_cast<int32_t>(low)) &
             static_cast<int32_t>(bits <= static_cast<int32_t>(high));
    }
    if (any == 0) continue;
    for (size_t i = begin; i < begin + kBlock; ++i) look(i);
  }
  for (; begin < values.size(); ++begin) look(begin);
}

/// Returns the bin with the wanted-th element, counted from the last bin; `wanted` becomes its place in the bin.
uint32_t bin_of(std::span<const uint32_t> bins, size_t& wanted) {
  size_t bin = bins.size() - 1;
  for (; bins[bin] < wanted; --bin) wanted -= bins[bin];
  return static_cast<uint32_t>(bin);
}

}  // namespace

TopK::TopK(size_t count, double share) : share_(share), errors_(count), bins_(kBins) {
  if (!(share > 0 && share <= 1)) {
    throw UsageError(fmt::format("top-k share is {}; more than 0 and at most 1 is allowed", share));
  }
}

size_t TopK::kept(size_t count) const {
  const auto part = static_cast<size_t>(share_ * static_cast<double>(count));
  return std::min(std::max<size_t>(part, 1), count);
}

/// Adds the gradients to the errors and counts the magnitudes by their leading bits.
void TopK::take_in(std::span<const float> gradients, std::span<float> errors) {
  constexpr size_t kCached = 4096;
  std::fill(bins_.begin(), bins_.end(), 0U);
  for (size_t begin = 0; begin < errors.size(); begin += kCached) {
    const size_t end = std::min(begin + kCached, errors.size());
    for (size_t i = begin; i < end; ++i) errors[i] += gradients[i];
    for (size_t i = begin; i < end; ++i) ++bins_[magnitude(errors[i]) >> kLastBits];
  }
}

void TopK::select(size_t offset, std::span<const float> gradients, std::span<SparseElement> to) {
  if (gradients.empty()) return;
  const std::span<float> errors = std::span(errors_).subspan(offset, gradients.size());
  take_in(gradients, errors);
  size_t wanted = kept(errors.size());
  uint32_t threshold = bin_of(bins_, wanted) << kLastBits;
  std::fill(bins_.begin(), bins_.end(), 0U);
  for_each_between(errors, threshold, threshold | kLastMask,
                   [&](size_t /*i*/, uint32_t bits) { ++bins_[bits & kLastMask]; });
  threshold |= bin_of(std::span(bins_).first(kLastMask + 1), wanted);
  size_t equal = wanted;  // the first ones at the threshold are sent
  SparseElement* next = to.data();
  for_each_between(errors, threshold, 0x7fffffffU, [&](size_t i, uint32_t bits) {
    if (bits == threshold) {
      if (equal == 0) return;
      --equal;
    }
    *next++ = {static_cast<uint32_t>(i), errors[i]};
    errors[i] = 0;
  });
}

void TopK::reset() { std::fill(errors_.begin(), errors_.end(), 0.0F); }

void add_up(std::span<const SparseElement> everyones, std::span<float> to) {
  std::fill(to.begin(), to.end(), 0.0F);
  for (const SparseElement& element : everyones) {
    if (element.index >= to.size()) {
      throw DataError(fmt::format("sparse gradient for element {}, but there are {}", element.index, to.size()));
    }
    to[element.index] += element.value;
  }
}

}  // namespace lockstep::allreduce
