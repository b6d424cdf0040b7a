// Reductions over axes and their opposite, broadcasting.
#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

uint32_t axes_mask(std::string_view op, const Shape& shape, std::span<const int> axes) {
  if (axes.empty()) return (1U << shape.rank()) - 1U;
  uint32_t mask = 0;
  for (const int axis : axes) {
    const int positive = axis < 0 ? axis + shape.rank() : axis;
    if (positive < 0 || positive >= shape.rank()) {
      reject(op, "axis " + std::to_string(axis) + " is not an axis of x " + shape.str());
    }
    mask |= 1U << positive;
  }
  return mask;
}

Shape reduced(const Shape& shape, uint32_t axes, bool keep_dims) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = (axes >> axis & 1U) != 0;
    if (!gone) dims.push_back(shape[axis]);
    if (gone && keep_dims) dims.push_back(1);
  }
  return Shape(dims);
}

Value reduce(Op op, Value x, std::span<const int> axes, bool keep_dims) {
  require_dtype(name(op), "x", x, DType::f32);
  const uint32_t mask = axes_mask(name(op), x.shape(), axes);
  return add_node(op, graph::ReduceAttrs{mask, keep_dims}, {x}, {{DType::f32, reduced(x.shape(), mask, keep_dims)}});
}

/// Broadcasts dy of a reduction over the reduced axes again.
Value spread(GradientRuleContext& g) {
  const Value x = g.input(0);
  const Shape kept = reduced(x.shape(), g.node().as<graph::ReduceAttrs>().axes, true);
  return broadcast_to(reshape(g.dy(), kept), x.shape());
}

}  // namespace

Value reduce_sum(Value x, std::span<const int> axes, bool keep_dims) {
  return reduce(Op::reduce_sum, x, axes, keep_dims);
}
Value reduce_mean(Value x, std::span<const int> axes, bool keep_dims) {
  if (x.shape().elements() == 0) reject("reduce_mean", "x " + x.shape().str() + " has no elements");
  return reduce(Op::reduce_mean, x, axes, keep_dims);
}
Value reduce_max(Value x, std::span<const int> axes, bool keep_dims) {
  if (x.shape().elements() == 0) reject("reduce_max", "x " + x.shape().str() + " has no elements");
  return reduce(Op::reduce_max, x, axes, keep_dims);
}

Value broadcast_to(Value x, const Shape& shape) {
  require_dtype("broadcast_to", "x", x, DType::f32);
  if (x.shape() == shape) return x;
  Shape result;
  if (!broadcast(x.shape(), shape, result) || result != shape) {
    reject("broadcast_to", "x " + x.shape().str() + " does not broadcast to " + shape.str());
  }
  return add_node(Op::broadcast_to, graph::NoAttrs{}, {x}, {{DType::f32, shape}});
}

Value reduce_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int missing = x.shape().rank() - shape.rank();
  std::vector<int> axes;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const bool repeated = axis < missing || (shape[axis - missing] == 1 && x.shape()[axis] != 1);
    if (repeated) axes.push_back(axis);
  }
  return reshape(axes.empty() ? x : reduce_sum(x, axes), shape);
}

void reduce_sum_gradient(GradientRuleContext& g) { g.set(0, spread(g)); }

void reduce_mean_gradient(GradientRuleContext& g) {
  const int64_t repeated = g.input(0).shape().elements() / g.output().shape().elements();
  g.set(0, scale(spread(g), 1.0F / static_cast<float>(repeated)));
}

void broadcast_to_gradient(GradientRuleContext& g) { g.set(0, reduce_to(g.dy(), g.input(0).shape())); }

}  // namespace lockstep::ops
