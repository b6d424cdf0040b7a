// Layers with parameters, and windows.
#include <fmt/format.h>
#include <unistd.h>

#include "interchange/layer_kinds.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using graph::Window;
using nn::Value;

constexpr int64_t kMostUnits = int64_t{1} << 31;
constexpr int64_t kMostPixels = int64_t{1} << 20;
/// Largest tensor that is checked further; beyond it, arithmetic could overflow.
constexpr double kMostBytes = 1e15;

double machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? static_cast<double>(pages) * static_cast<double>(page) : kMostBytes;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return bytes < 1e15 ? fmt::format("{:.1f} GB", bytes / 1e9) : fmt::format("{:.1g} GB", bytes / 1e9);
}

std::string sizes_text(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t size : dims) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void require_image(Value x) {
  if (x.shape().rank() == 4) return;
  throw ShapeError("x " + x.shape().str() +
                   " must be [batch, channels, height, width]; put a reshape before it, or it before the flatten");
}

bool says(const LayerContext& layer, std::string_view key, std::string_view word) {
  const YamlNode* node = layer.args.find(key);
  return node != nullptr && node->is(YamlNode::Kind::scalar) && layer.args.text(key, "") == word;
}

/// Returns the window of a kernel over x, from the keys stride and padding.
Window window_of(const LayerContext& layer, std::pair<int64_t, int64_t> kernel, std::pair<int64_t, int64_t> stride) {
  const Shape& x = layer.x().shape();
  Window window{kernel.first, kernel.second, stride.first, stride.second, 0, 0, 0, 0};
  if (says(layer, "padding", "valid")) return window;
  if (says(layer, "padding", "same")) {
    const Window vertical = ops::same_window(kernel.first, stride.first, x[2], x[2]);
    const Window horizontal = ops::same_window(kernel.second, stride.second, x[3], x[3]);
    window.pad_top = vertical.pad_top;
    window.pad_bottom = vertical.pad_bottom;
    window.pad_left = horizontal.pad_left;
    window.pad_right = horizontal.pad_right;
    return window;
  }
  const auto [high, wide] = layer.args.pair("padding", 0, 0, kMostPixels);
  window.pad_top = window.pad_bottom = high;
  window.pad_left = window.pad_right = wide;
  return window;
}

std::pair<int64_t, int64_t> stride_of(const LayerContext& layer) {
  return layer.args.pair("stride", 1, 1, kMostPixels);
}

Value with_bias(const LayerContext& layer, Value y, int64_t size) {
  if (says(layer, "bias", "none")) return y;
  return ops::bias_add(y, layer.parameter("bias", {size}, layer.args.initializer("bias", "zeros", size, size)));
}

Value activated(const LayerContext& layer, Value y) {
  const std::string activation = layer.args.choice("activation", {"none", "relu", "tanh", "sigmoid", "softplus"});
  if (activation == "none") return y;
  if (activation == "relu") return ops::relu(y);
  if (activation == "tanh") return ops::tanh(y);
  return activation == "sigmoid" ? ops::sigmoid(y) : ops::softplus(y);
}

Value build_pool(const LayerContext& layer, Value (*pool)(Value, const Window&)) {
  require_image(layer.x());
  const auto kernel = layer.args.pair("kernel", {}, 1, kMostPixels);
  const auto stride = layer.args.has("stride") ? stride_of(layer) : kernel;
  return pool(layer.x(), window_of(layer, kernel, stride));
}

graph::Sampling sampling_of(const LayerContext& layer) {
  const bool study = layer.args.choice("sampling", {"study", "half_pixel"}) == "study";
  return study ? graph::Sampling::study : graph::Sampling::half_pixel;
}

}  // namespace

void check_size(const std::string& what, std::span<const int64_t> dims, size_t copies) {
  double bytes = sizeof(float) * static_cast<double>(copies);
  for (const int64_t size : dims) bytes *= static_cast<double>(size);
  const double memory = machine_memory();
  if (bytes <= memory && bytes <= kMostBytes) return;
  throw ShapeError(fmt::format("{} {} would need {} of memory{}; this machine has {}", what, sizes_text(dims),
                               bytes_text(bytes), copies > 1 ? " with its gradient" : "", bytes_text(memory)));
}

Value LayerContext::parameter(std::string_view parameter_name, const std::vector<int64_t>& dims,
                              graph::Initializer start) const {
  check_size(std::string(parameter_name), dims, 2);
  const Value made = graph.parameter(parameter_name, Shape(dims), std::move(start));
  const std::vector<int64_t> all{static_cast<int64_t>(graph.parameter_count())};
  check_size("all parameters up to here", all, 2);
  return made;
}

Value build_dense(const LayerContext& layer) {
  const Value x = layer.x();
  if (x.shape().rank() != 2) {
    throw ShapeError("x " + x.shape().str() + " must be a matrix; put a flatten before it");
  }
  const int64_t in = x.shape()[1];
  const int64_t units = layer.args.integer("units", {}, 1, kMostUnits);
  const Value weights = layer.parameter("weights", {in, units}, layer.args.initializer("weights", "xavier", in, units));
  return activated(layer, with_bias(layer, ops::matmul(x, weights), units));
}

Value build_conv(const LayerContext& layer) {
  const Value x = layer.x();
  require_image(x);
  const int64_t in = x.shape()[1];
  const int64_t channels = layer.args.integer("channels", {}, 1, kMostUnits);
  const auto kernel = layer.args.pair("kernel", {}, 1, kMostPixels);
  const Window window = window_of(layer, kernel, stride_of(layer));
  const std::vector<int64_t> dims{channels, in, kernel.first, kernel.second};
  check_size("weights", dims, 2);
  const int64_t taps = kernel.first * kernel.second;
  const Value weights =
      layer.parameter("weights", dims, layer.args.initializer("weights", "xavier", in * taps, channels * taps));
  const Value y = ops::conv2d(x, weights, window);
  return activated(layer, with_bias(layer, y, channels));
}

Value build_bias(const LayerContext& layer) {
  const Value x = layer.x();
  if (x.shape().rank() < 2) throw ShapeError("x " + x.shape().str() + " must have at least two axes");
  const int64_t size = x.shape()[1];
  return ops::bias_add(x, layer.parameter("bias", {size}, layer.args.initializer("start", "zeros", size, size)));
}

Value build_parameter(const LayerContext& layer) {
  const std::vector<int64_t> dims = layer.args.integers("shape", 1, kMostUnits);
  check_size("shape", dims, 2);
  const int64_t first = dims.empty() ? 1 : dims.front();
  const int64_t last = dims.empty() ? 1 : dims.back();
  return layer.parameter(layer.name, dims, layer.args.initializer("start", "xavier", first, last));
}

Value build_conv2d(const LayerContext& layer) {
  require_image(layer.x());
  const Shape& weights = layer.inputs[1].shape();
  if (weights.rank() != 4) throw ShapeError("weights " + weights.str() + " must be [out, in, height, width]");
  const Window window = window_of(layer, {weights[2], weights[3]}, stride_of(layer));
  return ops::conv2d(layer.x(), layer.inputs[1], window);
}

Value build_max_pool(const LayerContext& layer) { return build_pool(layer, ops::max_pool); }
Value build_avg_pool(const LayerContext& layer) { return build_pool(layer, ops::avg_pool); }

Value build_lrn(const LayerContext& layer) {
  require_image(layer.x());
  const auto number = [&](std::string_view key, double fallback) {
    return static_cast<float>(layer.args.number(key, fallback));
  };
  graph::LrnAttrs attrs;
  attrs.radius = layer.args.integer("radius", attrs.radius, 0, kMostPixels);
  attrs.alpha = number("alpha", attrs.alpha);
  attrs.beta = number("beta", attrs.beta);
  attrs.bias = number("bias", attrs.bias);
  return ops::lrn(layer.x(), attrs);
}

Value build_affine_grid(const LayerContext& layer) {
  const int64_t height = layer.args.integer("height", layer.request.image[1], 1, kMostPixels);
  const int64_t width = layer.args.integer("width", layer.request.image[2], 1, kMostPixels);
  return ops::affine_grid(layer.x(), height, width, sampling_of(layer));
}

Value build_bilinear_sample(const LayerContext& layer) {
  return ops::bilinear_sample(layer.inputs[0], layer.inputs[1], sampling_of(layer));
}

}  // namespace lockstep::interchange
