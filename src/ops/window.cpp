// Ops whose window slides over the image (convolution, pooling) or over its channels (normalisation).
#include <algorithm>

#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

std::string describe(const Window& w) {
  return "window " + std::to_string(w.kernel_h) + "x" + std::to_string(w.kernel_w) + " stride " +
         std::to_string(w.stride_h) + "x" + std::to_string(w.stride_w) + " padding " + std::to_string(w.pad_top) + "," +
         std::to_string(w.pad_bottom) + "," + std::to_string(w.pad_left) + "," + std::to_string(w.pad_right);
}

/// Output shape of a window over an image [N,C,H,W] with `channels` output channels.
Shape slide(std::string_view op, const Shape& x, int64_t channels, const Window& w) {
  const bool positive = w.kernel_h > 0 && w.kernel_w > 0 && w.stride_h > 0 && w.stride_w > 0;
  const bool padded = std::min({w.pad_top, w.pad_bottom, w.pad_left, w.pad_right}) >= 0;
  const int64_t free_h = x[2] + w.pad_top + w.pad_bottom - w.kernel_h;
  const int64_t free_w = x[3] + w.pad_left + w.pad_right - w.kernel_w;
  if (!positive || !padded || free_h < 0 || free_w < 0) {
    reject(op, describe(w) + " does not fit x " + x.str());
  }
  return {x[0], channels, free_h / w.stride_h + 1, free_w / w.stride_w + 1};
}

Value pool(Op op, Value x, const Window& w) {
  require_dtype(name(op), "x", x, DType::f32);
  require_rank(name(op), "x", x, 4);
  if (std::max(w.pad_top, w.pad_bottom) >= w.kernel_h || std::max(w.pad_left, w.pad_right) >= w.kernel_w) {
    reject(name(op), describe(w) + ": the padding must be smaller than the window");
  }
  const Shape y = slide(name(op), x.shape(), x.shape()[1], w);
  return add_node(op, graph::PoolAttrs{w, false}, {x}, {{DType::f32, y}});
}

}  // namespace

Window window(int64_t kernel, int64_t stride, int64_t padding) {
  return {kernel, kernel, stride, stride, padding, padding, padding, padding};
}

Window same_window(int64_t kernel, int64_t stride, int64_t height, int64_t width) {
  if (kernel <= 0 || stride <= 0) {
    reject("same_window",
           "kernel " + std::to_string(kernel) + " and stride " + std::to_string(stride) + " must be positive");
  }
  const auto total = [&](int64_t size) {
    const int64_t outputs = (size + stride - 1) / stride;
    return std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
  };
  const int64_t h = total(height);
  const int64_t w = total(width);
  return {kernel, kernel, stride, stride, h / 2, h - h / 2, w / 2, w - w / 2};
}

Value conv2d(Value x, Value weights, const Window& w) {
  for (const auto& [argument, value] : {std::pair{"x", x}, std::pair{"weights", weights}}) {
    require_dtype("conv2d", argument, value, DType::f32);
    require_rank("conv2d", argument, value, 4);
  }
  const Shape& filter = weights.shape();
  if (filter[1] != x.shape()[1]) {
    reject("conv2d", "weights " + filter.str() + " want " + std::to_string(filter[1]) + " input channels, x " +
                         x.shape().str() + " has " + std::to_string(x.shape()[1]));
  }
  if (filter[2] != w.kernel_h || filter[3] != w.kernel_w) {
    reject("conv2d", "weights " + filter.str() + " do not fit " + describe(w));
  }
  const Shape y = slide("conv2d", x.shape(), filter[0], w);
  return add_node(Op::conv2d, graph::ConvAttrs{w, false, graph::Activation::none}, {x, weights}, {{DType::f32, y}});
}

Value conv2d_grad_input(Value dy, Value weights, const Shape& input, const Window& w) {
  if (slide("conv2d_grad_input", input, weights.shape()[0], w) != dy.shape()) {
    reject("conv2d_grad_input", "dy " + dy.shape().str() + " does not fit input " + input.str());
  }
  return add_node(Op::conv2d_grad_input, graph::ConvAttrs{w, false, graph::Activation::none}, {dy, weights},
                  {{DType::f32, input}});
}

Value conv2d_grad_weights(Value x, Value dy, const Shape& weights, const Window& w) {
  if (slide("conv2d_grad_weights", x.shape(), weights[0], w) != dy.shape()) {
    reject("conv2d_grad_weights", "dy " + dy.shape().str() + " does not fit x " + x.shape().str());
  }
  return add_node(Op::conv2d_grad_weights, graph::ConvAttrs{w, false, graph::Activation::none}, {x, dy},
                  {{DType::f32, weights}});
}

Value max_pool(Value x, const Window& w) { return pool(Op::max_pool, x, w); }
Value avg_pool(Value x, const Window& w) { return pool(Op::avg_pool, x, w); }

Value max_pool_grad(Value x, Value dy, const Window& w) {
  return add_node(Op::max_pool_grad, graph::PoolAttrs{w, false}, {x, dy}, {x.type()});
}

Value avg_pool_grad(Value dy, const Shape& input, const Window& w) {
  return add_node(Op::avg_pool_grad, graph::PoolAttrs{w, false}, {dy}, {{DType::f32, input}});
}

Value lrn(Value x, const LrnAttrs& attrs) {
  require_dtype("lrn", "x", x, DType::f32);
  require_rank("lrn", "x", x, 4);
  if (attrs.radius < 0) reject("lrn", "radius " + std::to_string(attrs.radius) + " must not be negative");
  if (!(attrs.bias > 0.0F)) reject("lrn", "bias " + std::to_string(attrs.bias) + " must be positive");
  if (!(attrs.alpha >= 0.0F)) reject("lrn", "alpha " + std::to_string(attrs.alpha) + " must not be negative");
  return add_node(Op::lrn, attrs, {x}, {x.type()});
}

void conv2d_gradient(GradientRuleContext& g) {
  const Window w = g.node().as<graph::ConvAttrs>().window;
  const Value x = g.input(0);
  const Value weights = g.input(1);
  g.set(0, conv2d_grad_input(g.dy(), weights, x.shape(), w));
  g.set(1, conv2d_grad_weights(x, g.dy(), weights.shape(), w));
}

void max_pool_gradient(GradientRuleContext& g) {
  const Window w = g.node().as<graph::PoolAttrs>().window;
  g.set(0, max_pool_grad(g.input(0), g.dy(), w));
}

void avg_pool_gradient(GradientRuleContext& g) {
  const Window w = g.node().as<graph::PoolAttrs>().window;
  g.set(0, avg_pool_grad(g.dy(), g.input(0).shape(), w));
}

void lrn_gradient(GradientRuleContext& g) {
  const LrnAttrs attrs = g.node().as<LrnAttrs>();
  g.set(0, add_node(Op::lrn_grad, attrs, {g.input(0), g.dy()}, {g.dy().type()}));
}

}  // namespace lockstep::ops
