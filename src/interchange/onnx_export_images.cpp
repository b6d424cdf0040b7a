#include "interchange/onnx_export_images.h"

#include <array>

namespace lockstep::interchange {
namespace {

using graph::Sampling;
using Ints = std::vector<int64_t>;

/// Returns the coordinate of cell i of `size`; see graph::Sampling.
float grid_coordinate(Sampling sampling, int64_t i, int64_t size) {
  const auto at = static_cast<double>(i);
  const auto of = static_cast<double>(size);
  if (sampling == Sampling::half_pixel) return static_cast<float>((2.0 * at + 1.0) / of - 1.0);
  return size == 1 ? -1.0F : static_cast<float>(2.0 * at / (of - 1.0) - 1.0);
}

/// The two pixels on either side of each point along one axis, and their weights, all [N, Ho, Wo].
struct Corners {
  std::array<std::string, 2> index;
  std::array<std::string, 2> weight;
};

/// Follows graph::Sampling::study: corners are clipped, and weights come from the clipped corners.
Corners clipped_corners(NodeWriter& w, const std::string& grid, int64_t coordinate, int64_t size) {
  const std::string x = w.step(
      "Squeeze", {w.step("Slice", {grid, w.ints({coordinate}), w.ints({coordinate + 1}), w.ints({3})}), w.ints({3})});
  const std::string pixel = w.step("Mul", {w.step("Add", {x, w.scalar(1)}), w.scalar(static_cast<float>(size) / 2.0F)});
  const std::string low = w.step("Floor", {pixel});
  const std::string least = w.scalar(0);
  const std::string most = w.scalar(static_cast<float>(size - 1));
  const std::string first = w.step("Clip", {low, least, most});
  const std::string second = w.step("Clip", {w.step("Add", {low, w.scalar(1)}), least, most});
  return {{first, second}, {w.step("Sub", {second, pixel}), w.step("Sub", {pixel, first})}};
}

/// Returns the pixels at (row, column) times their weights, [N, C, points].
std::string corner(NodeWriter& w, const std::string& pixels, const Corners& rows, const Corners& columns, size_t row,
                   size_t column) {
  const Shape& image = w.in_shape(0);
  const Shape& grid = w.in_shape(1);
  const std::string shape = w.ints({-1, 1, grid[1] * grid[2]});
  const std::string row_start = w.step("Mul", {rows.index[row], w.scalar(static_cast<float>(image[3]))});
  const std::string at =
      w.step("Cast", {w.step("Add", {row_start, columns.index[column]})}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  const std::string of_channels = w.step("Expand", {w.step("Reshape", {at, shape}), w.ints({1, image[1], 1})});
  const std::string weight = w.step("Mul", {rows.weight[row], columns.weight[column]});
  return w.step("Mul", {w.step("GatherElements", {pixels, of_channels}, {{"axis", int64_t{2}}}),
                        w.step("Reshape", {weight, shape})});
}

}  // namespace

void export_lrn(NodeWriter& w) {
  const auto& attrs = w.node().as<graph::LrnAttrs>();
  const int64_t size = 2 * attrs.radius + 1;
  // ONNX divides alpha by the window's size; this library does not.
  w.result(
      "LRN", {w.in(0)},
      {{"size", size}, {"alpha", attrs.alpha * static_cast<float>(size)}, {"beta", attrs.beta}, {"bias", attrs.bias}});
}

void export_affine_grid(NodeWriter& w) {
  const auto& [height, width, sampling] = w.node().as<graph::AffineGridAttrs>();
  std::vector<float> cells;
  for (int64_t i = 0; i < height * width; ++i) cells.push_back(grid_coordinate(sampling, i % width, width));
  for (int64_t i = 0; i < height * width; ++i) cells.push_back(grid_coordinate(sampling, i / width, height));
  cells.resize(cells.size() + static_cast<size_t>(height * width), 1.0F);
  const std::string rows = w.step("Reshape", {w.in(0), w.ints({-1, 3})});
  const std::string points = w.step("MatMul", {rows, w.floats({3, height * width}, cells)});
  const std::string pairs = w.step("Reshape", {points, w.ints({-1, 2, height * width})});
  const std::string last = w.step("Transpose", {pairs}, {{"perm", Ints{0, 2, 1}}});
  w.result("Reshape", {last, w.ints({-1, height, width, 2})});
}

void export_bilinear_sample(NodeWriter& w) {
  if (w.node().as<graph::SampleAttrs>().sampling == Sampling::half_pixel) {
    w.result(
        "GridSample", {w.in(0), w.in(1)},
        {{"mode", std::string("bilinear")}, {"padding_mode", std::string("zeros")}, {"align_corners", int64_t{0}}});
    return;
  }
  const Shape& image = w.in_shape(0);
  constexpr int64_t kExactInFloat = 1 << 24;
  if (image[2] * image[3] > kExactInFloat) w.refuse("images " + image.str() + " are too large for ONNX's own ops");
  const Corners columns = clipped_corners(w, w.in(1), 0, image[3]);
  const Corners rows = clipped_corners(w, w.in(1), 1, image[2]);
  const std::string pixels = w.step("Reshape", {w.in(0), w.ints({-1, image[1], image[2] * image[3]})});
  const std::string upper =
      w.step("Add", {corner(w, pixels, rows, columns, 0, 0), corner(w, pixels, rows, columns, 0, 1)});
  const std::string lower =
      w.step("Add", {corner(w, pixels, rows, columns, 1, 0), corner(w, pixels, rows, columns, 1, 1)});
  w.result("Reshape", {w.step("Add", {upper, lower}), w.reshape_dims(w.out_dims())});
}

}  // namespace lockstep::interchange
