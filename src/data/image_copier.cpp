#include "data/image_copier.h"

#include <algorithm>
#include <cstdint>

namespace lockstep::data {
namespace {

void scale_bytes(const uint8_t* __restrict src, float* __restrict dst, size_t count, float scale) {
  for (size_t i = 0; i < count; ++i) dst[i] = static_cast<float>(src[i]) * scale;
}

/// Copies with a factor and an offset for each pixel.
template <class T>
void scale_each(const T* __restrict src, float* __restrict dst, size_t count, const float* __restrict factor,
                const float* __restrict offset) {
  for (size_t i = 0; i < count; ++i) dst[i] = static_cast<float>(src[i]) * factor[i] + offset[i];
}

void scale_in_place(float* values, size_t count, const float* __restrict factor, const float* __restrict offset) {
  for (size_t i = 0; i < count; ++i) values[i] = values[i] * factor[i] + offset[i];
}

}  // namespace

ImageCopier::ImageCopier(const Examples& examples, float byte_scale, const PixelScaling* pixels)
    : examples_(examples), pixels_(examples.shape.size()), byte_scale_(byte_scale) {
  if (pixels == nullptr || pixels->empty()) return;
  // Combines scaling bytes and standardising pixels into one multiplication and one addition.
  const float scale = examples.bytes.empty() ? 1.0F : byte_scale;
  for (size_t i = 0; i < pixels_; ++i) {
    const float inverse = pixels->inverse_deviation[i];
    factors_.push_back(scale * inverse);
    offsets_.push_back(-pixels->mean[i] * inverse);
  }
}

void ImageCopier::copy(size_t index, float* image) const {
  const bool each = !factors_.empty();
  if (examples_.maker) {
    examples_.maker->make(examples_.first_made + static_cast<int64_t>(index), image);
    if (each) scale_in_place(image, pixels_, factors_.data(), offsets_.data());
  } else if (examples_.bytes.empty()) {
    const float* src = examples_.floats.data() + index * pixels_;
    if (each) return scale_each(src, image, pixels_, factors_.data(), offsets_.data());
    std::copy_n(src, pixels_, image);
  } else {
    const uint8_t* src = examples_.bytes.data() + index * pixels_;
    if (each) return scale_each(src, image, pixels_, factors_.data(), offsets_.data());
    scale_bytes(src, image, pixels_, byte_scale_);
  }
}

void ImageCopier::prefetch(size_t index) const {
  constexpr size_t kLine = 64;
  if (examples_.bytes.empty()) return;
  const uint8_t* begin = examples_.bytes.data() + index * pixels_;
  for (size_t i = 0; i < pixels_; i += kLine) __builtin_prefetch(begin + i);
}

}  // namespace lockstep::data
