// Strides for walking over tensors of different shapes together: row-major, zero along broadcast axes.
#pragma once

#include <array>

#include "lockstep/shape.h"

namespace lockstep::backend::cpu {

using Strides = std::array<int64_t, Shape::kMaxRank>;

/// Returns the strides of `shape` as part of `target` (aligned at the last axis); 0 along broadcast axes.
inline Strides broadcast_strides(const Shape& shape, const Shape& target) {
  Strides strides{};
  const int missing = target.rank() - shape.rank();
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis + missing)] = shape[axis] == 1 ? 0 : stride;
    stride *= shape[axis];
  }
  return strides;
}

/// Calls body(linear index, offset by `strides`) for every element of `shape` in row-major order.
template <class Body>
void for_each(const Shape& shape, const Strides& strides, Body body) {
  std::array<int64_t, Shape::kMaxRank> at{};
  const int64_t count = shape.elements();
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    body(i, offset);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      offset += strides[a];
      if (++at[a] < shape[axis]) break;
      offset -= strides[a] * shape[axis];
      at[a] = 0;
    }
  }
}

}  // namespace lockstep::backend::cpu
