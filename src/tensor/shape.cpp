#include "lockstep/shape.h"

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep {

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    throw ShapeError("shape of " + std::to_string(dims.size()) + " dimensions: at most " + std::to_string(kMaxRank));
  }
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  for (const int64_t size : dims) {
    if (size < 0) throw ShapeError("shape " + str() + " has a negative dimension");
  }
}

int64_t Shape::elements() const { return elements(0, rank_); }

int64_t Shape::elements(int from, int to) const {
  int64_t product = 1;
  for (int axis = from; axis < to; ++axis) product *= (*this)[axis];
  return product;
}

Shape Shape::with(int axis, int64_t size) const {
  Shape changed = *this;
  changed.dims_[static_cast<size_t>(axis)] = size;
  return changed;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) text += (axis == 0 ? "" : ", ") + std::to_string((*this)[axis]);
  return text + "]";
}

bool broadcast(const Shape& a, const Shape& b, Shape& result) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank; ++axis) {
    const int in_a = axis - (rank - a.rank());
    const int in_b = axis - (rank - b.rank());
    const int64_t size_a = in_a < 0 ? 1 : a[in_a];
    const int64_t size_b = in_b < 0 ? 1 : b[in_b];
    if (size_a != size_b && size_a != 1 && size_b != 1) return false;
    dims[static_cast<size_t>(axis)] = size_a == 1 ? size_b : size_a;
  }
  result = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
  return true;
}

}  // namespace lockstep
