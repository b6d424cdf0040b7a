// The type of a tensor: its element type and its shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

enum class DType : uint8_t { f32, bf16, f16, i32, i64, u8 };

/// Bytes of one element.
size_t size_of(DType dtype);
std::string_view name(DType dtype);

/// The sizes of a tensor's dimensions, outermost first. A value type without heap storage; rank 0 is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  /// Throws ShapeError for more than kMaxRank dimensions or a negative size.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  [[nodiscard]] std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  /// Number of elements; 1 for a scalar.
  [[nodiscard]] int64_t elements() const;
  /// Product of the dimensions [from, to).
  [[nodiscard]] int64_t elements(int from, int to) const;
  /// The same shape with one dimension replaced.
  [[nodiscard]] Shape with(int axis, int64_t size) const;
  /// "[64, 1, 28, 28]".
  [[nodiscard]] std::string str() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Sets `result` to an elementwise result's shape by the usual broadcasting rule; returns false if the shapes do not
/// fit.
bool broadcast(const Shape& a, const Shape& b, Shape& result);

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  [[nodiscard]] size_t bytes() const { return size_of(dtype) * static_cast<size_t>(shape.elements()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace lockstep
