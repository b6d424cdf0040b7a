// The functions that build a graph: `relu(conv2d(x, w))`. Each checks its arguments' shapes and types at building
// time (ShapeError names the op, the argument and both shapes) and adds one node to the graph of its first argument.
// Images are [batch, channels, height, width]; convolution weights are [out, in, height, width]; matrices are
// row-major. docs/ops.md describes every op.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lockstep/graph.h"

namespace lockstep::ops {

using graph::Graph;
using graph::LrnAttrs;
using graph::Sampling;
using graph::Value;
using graph::Window;

/// Returns a tensor with the same value everywhere.
Value constant(Graph& graph, const Shape& shape, float value);

/// op(a) op(b) of two matrices; op transposes if trans_a or trans_b says so.
Value matmul(Value a, Value b, bool trans_a = false, bool trans_b = false);
/// x + bias along axis 1, bias of shape [x.shape[1]].
Value bias_add(Value x, Value bias);

/// Returns a square window with the same stride and padding on all sides.
Window window(int64_t kernel, int64_t stride = 1, int64_t padding = 0);
/// Returns TensorFlow's SAME padding of a kernel for an input of the given height and width.
Window same_window(int64_t kernel, int64_t stride, int64_t height, int64_t width);

/// Cross-correlation of x [N,C,H,W] with weights [O,C,kh,kw]. The window's kernel size must equal that of the weights.
Value conv2d(Value x, Value weights, const Window& window);
/// Largest value in each window; padding never wins.
Value max_pool(Value x, const Window& window);
/// Mean of the cells of each window that lie inside the image.
Value avg_pool(Value x, const Window& window);

/// Local response normalisation of x [N,C,H,W]: x / (bias + alpha * sum of x^2 over the near channels) ^ beta.
Value lrn(Value x, const LrnAttrs& attrs = {});

/// Sampling points: theta [N,6], the rows of a 2x3 matrix, times (x, y, 1) for each cell of a height x width image.
/// Returns [N,height,width,2], each (x, y) in -1 to 1.
Value affine_grid(Value theta, int64_t height, int64_t width, Sampling sampling);
/// The image [N,C,H,W] read at the points of grid [N,Ho,Wo,2], interpolated between the four nearest pixels.
Value bilinear_sample(Value image, Value grid, Sampling sampling);

Value relu(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value softplus(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value square(Value x);
Value neg(Value x);
Value abs(Value x);
/// x * factor and x + term, with a constant factor or term.
Value scale(Value x, float factor);
Value add_scalar(Value x, float term);

/// Elementwise arithmetic with broadcasting.
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);

/// Softmax over the last axis of a matrix.
Value softmax(Value logits);
/// -log(probabilities[label]) per row; labels are int32 [N].
Value cross_entropy(Value probabilities, Value labels);
/// cross_entropy(softmax(logits), labels) computed together, stable for any logits.
Value softmax_cross_entropy(Value logits, Value labels);
/// 1 if the largest score of a row is its label's (the first of equals), else 0; float32 [N].
Value correct(Value scores, Value labels);

/// Reductions over the given axes (all when empty); negative axes count from the end.
Value reduce_sum(Value x, std::span<const int> axes = {}, bool keep_dims = false);
Value reduce_mean(Value x, std::span<const int> axes = {}, bool keep_dims = false);
Value reduce_max(Value x, std::span<const int> axes = {}, bool keep_dims = false);
Value broadcast_to(Value x, const Shape& shape);

/// The same elements in another shape; one dimension may be -1.
Value reshape(Value x, std::span<const int64_t> dims);
Value reshape(Value x, const Shape& shape);
/// [N, ...] -> [N, product of the rest].
Value flatten(Value x);
Value transpose(Value x, std::span<const int64_t> permutation);
Value concat(std::span<const Value> parts, int axis);
Value slice(Value x, int axis, int64_t begin, int64_t size);
Value identity(Value x);

/// Zeroes each element with probability `rate` and scales the rest by 1 / (1 - rate). The mask depends on the seed, the
/// op, the step and the row of the global batch (axis 0), not on the thread or process that computes it.
Value dropout(Value x, float rate);
Value random_uniform(Graph& graph, const Shape& shape, float low = 0, float high = 1);
Value random_normal(Graph& graph, const Shape& shape, float mean = 0, float deviation = 1);

/// Adds the backward pass of a scalar `loss` to its graph and returns d loss / d target for each target (zeros if the
/// loss does not depend on it). Throws ShapeError if the loss is not a scalar or an op on the path has no gradient.
std::vector<Value> gradients(Value loss, std::span<const Value> targets);
/// Returns the gradients of all parameters of the graph, in their order.
std::vector<Value> gradients(Value loss);

}  // namespace lockstep::ops
