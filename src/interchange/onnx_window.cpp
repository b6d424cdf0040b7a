#include "interchange/onnx_window.h"

#include <algorithm>
#include <array>

#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using graph::Value;
using graph::Window;
using Ints = std::vector<int64_t>;

/// Largest accepted window, stride or padding of an image.
constexpr int64_t kLargest = 1 << 20;

/// Returns two sizes, or four for pads.
Ints sizes(NodeReader& r, std::string_view name, Ints otherwise, int64_t least) {
  const Ints values = r.list(name).value_or(otherwise);
  const std::string seen = std::string(name) + " " + dims_text(values);
  if (values.size() != otherwise.size()) {
    r.refuse(seen + " has " + std::to_string(values.size()) + " values; images have " +
             (otherwise.size() == 4 ? "4 (top, left, bottom, right)" : "2 (height, width)") +
             ", and nothing else can be imported");
  }
  const auto fits = [&](int64_t value) { return value >= least && value <= kLargest; };
  if (!std::all_of(values.begin(), values.end(), fits)) {
    r.refuse(seen + " cannot be imported; " + std::to_string(least) + " to " + std::to_string(kLargest) +
             " is allowed" + (otherwise.size() == 4 ? ", as negative pads, which cut, are not known" : ""));
  }
  return values;
}

/// Returns the padding of SAME_UPPER or SAME_LOWER on one axis: before and after it.
std::pair<int64_t, int64_t> same_pads(int64_t size, int64_t kernel, int64_t stride, bool upper) {
  const int64_t outputs = (size + stride - 1) / stride;
  const int64_t total = std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
  const int64_t less = total / 2;
  return upper ? std::pair{less, total - less} : std::pair{total - less, less};
}

Value image(NodeReader& r) {
  const Value x = r.value(0);
  if (x.shape().rank() != 4) r.refuse("x " + x.shape().str() + " must be [batch, channels, height, width]");
  return x;
}

Window read_window(NodeReader& r, const Shape& x, Ints kernel) {
  for (const int64_t dilation : sizes(r, "dilations", {1, 1}, 1)) {
    if (dilation != 1) r.refuse("dilations other than 1 cannot be imported");
  }
  kernel = sizes(r, "kernel_shape", kernel, 1);
  const Ints strides = sizes(r, "strides", {1, 1}, 1);
  Ints pads = sizes(r, "pads", {0, 0, 0, 0}, 0);
  const std::string automatic = r.attribute("auto_pad", std::string("NOTSET"));
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    const bool upper = automatic == "SAME_UPPER";
    const auto [top, bottom] = same_pads(x[2], kernel[0], strides[0], upper);
    const auto [left, right] = same_pads(x[3], kernel[1], strides[1], upper);
    pads = {top, left, bottom, right};
  } else if (automatic == "VALID") {
    pads = {0, 0, 0, 0};
  } else if (automatic != "NOTSET") {
    r.refuse("auto_pad '" + printable(automatic) +
             "' is unknown; NOTSET, VALID, SAME_UPPER and SAME_LOWER are allowed");
  }
  return {kernel[0], kernel[1], strides[0], strides[1], pads[0], pads[2], pads[1], pads[3]};
}

Window pool_window(NodeReader& r, const Shape& x) {
  if (!r.list("kernel_shape")) r.refuse("it has no kernel_shape");
  const Window w = read_window(r, x, {1, 1});
  const bool even = (x[2] + w.pad_top + w.pad_bottom - w.kernel_h) % w.stride_h == 0 &&
                    (x[3] + w.pad_left + w.pad_right - w.kernel_w) % w.stride_w == 0;
  if (!even) r.require("ceil_mode", 0);
  if (std::max(w.pad_top, w.pad_bottom) >= w.kernel_h || std::max(w.pad_left, w.pad_right) >= w.kernel_w) {
    r.refuse("pads " + dims_text(Ints{w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}) +
             " (top, left, bottom, right) must be smaller than the window " + dims_text(Ints{w.kernel_h, w.kernel_w}) +
             ", or a window would see nothing but padding");
  }
  return w;
}

constexpr std::array kPlane{2, 3};

}  // namespace

void import_conv(NodeReader& r) {
  const Value x = image(r);
  const Value weights = r.value(1);
  if (weights.shape().rank() != 4) r.refuse("weights " + weights.shape().str() + " must be of four dimensions");
  r.require("group", 1);
  const Window window = read_window(r, x.shape(), {weights.shape()[2], weights.shape()[3]});
  const Value y = ops::conv2d(x, weights, window);
  r.result(r.has(2) ? ops::bias_add(y, r.value(2)) : y);
}

void import_max_pool(NodeReader& r) {
  const Value x = image(r);
  r.require("storage_order", 0);
  r.result(ops::max_pool(x, pool_window(r, x.shape())));
}

void import_average_pool(NodeReader& r) {
  const Value x = image(r);
  const Window w = pool_window(r, x.shape());
  const bool padded = std::max({w.pad_top, w.pad_bottom, w.pad_left, w.pad_right}) > 0;
  if (padded && r.attribute("count_include_pad", int64_t{0}) != 0) {
    r.refuse(
        "count_include_pad 1 cannot be imported: padding does not count in means here; export it with "
        "count_include_pad 0, or without padding");
  }
  r.result(ops::avg_pool(x, w));
}

void import_global_average_pool(NodeReader& r) { r.result(ops::reduce_mean(image(r), kPlane, true)); }
void import_global_max_pool(NodeReader& r) { r.result(ops::reduce_max(image(r), kPlane, true)); }

void import_lrn(NodeReader& r) {
  const Value x = image(r);
  const int64_t size = r.attribute("size", int64_t{0});
  if (size < 1 || size % 2 == 0 || size > kLargest) {
    r.refuse("size " + std::to_string(size) +
             " cannot be imported: a channel is normalised with as many channels before as after it, so an odd size is "
             "allowed");
  }
  // ONNX divides alpha by the window's size; this library does not.
  const float alpha = r.attribute("alpha", 1e-4F) / static_cast<float>(size);
  r.result(ops::lrn(x, {(size - 1) / 2, alpha, r.attribute("beta", 0.75F), r.attribute("bias", 1.0F)}));
}

void import_affine_grid(NodeReader& r) {
  const Value theta = r.value(0);
  const Ints& size = r.ints(1);
  r.require("align_corners", 0);
  if (size.size() != 4 || theta.shape().rank() != 3 || theta.shape().elements(1, 3) != 6) {
    r.refuse("only grids over images can be imported, from theta [batch, 2, 3]");
  }
  if (std::max(size[2], size[3]) > kLargest) r.refuse("the size " + dims_text(size) + " is too large");
  const Value rows = ops::reshape(theta, Shape{theta.shape()[0], 6});
  r.result(ops::affine_grid(rows, size[2], size[3], graph::Sampling::half_pixel));
}

void import_grid_sample(NodeReader& r) {
  const std::string mode = r.attribute("mode", std::string("linear"));
  const std::string padding = r.attribute("padding_mode", std::string("zeros"));
  if (mode != "linear" && mode != "bilinear")
    r.refuse("mode '" + printable(mode) + "' cannot be imported; bilinear can");
  if (padding != "zeros") r.refuse("padding_mode '" + printable(padding) + "' cannot be imported; zeros can");
  r.require("align_corners", 0);
  r.result(ops::bilinear_sample(image(r), r.value(1), graph::Sampling::half_pixel));
}

}  // namespace lockstep::interchange
