// Ops that move elements without computing.
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

int positive_axis(std::string_view op, const Shape& shape, int axis) {
  const int positive = axis < 0 ? axis + shape.rank() : axis;
  if (positive < 0 || positive >= shape.rank()) {
    reject(op, "axis " + std::to_string(axis) + " is not an axis of " + shape.str());
  }
  return positive;
}

}  // namespace

Value reshape(Value x, std::span<const int64_t> dims) {
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  int64_t known = 1;
  int64_t* open = nullptr;
  std::string wanted;
  for (int64_t& size : sizes) {
    wanted += (wanted.empty() ? "" : ", ") + std::to_string(size);
    if (size == -1 && open == nullptr) {
      open = &size;
    } else {
      known *= size;
    }
  }
  const int64_t elements = x.shape().elements();
  if (open != nullptr && known > 0 && elements % known == 0) *open = elements / known;
  int64_t product = 1;
  for (const int64_t size : sizes) product = size < 0 ? -1 : product * size;
  if (product != elements) {
    reject("reshape",
           "x " + x.shape().str() + " of " + std::to_string(elements) + " elements does not fit [" + wanted + "]");
  }
  return reshape(x, Shape(sizes));
}

Value reshape(Value x, const Shape& shape) {
  if (shape == x.shape()) return x;
  if (shape.elements() != x.shape().elements()) {
    reject("reshape", "x " + x.shape().str() + " does not fit " + shape.str());
  }
  return add_node(Op::reshape, graph::NoAttrs{}, {x}, {{x.dtype(), shape}});
}

Value flatten(Value x) {
  if (x.shape().rank() < 1) reject("flatten", "x " + x.shape().str() + " must have at least one axis");
  return reshape(x, Shape{x.shape()[0], x.shape().elements(1, x.shape().rank())});
}

Value transpose(Value x, std::span<const int64_t> permutation) {
  require_dtype("transpose", "x", x, DType::f32);
  const int rank = x.shape().rank();
  std::vector<int64_t> dims;
  uint32_t seen = 0;
  for (const int64_t axis : permutation) {
    if (axis < 0 || axis >= rank || (seen >> axis & 1U) != 0) break;
    seen |= 1U << axis;
    dims.push_back(x.shape()[static_cast<int>(axis)]);
  }
  const Shape order(permutation);
  if (static_cast<int>(dims.size()) != rank || order.rank() != rank) {
    reject("transpose", "permutation " + order.str() + " does not order the axes of x " + x.shape().str());
  }
  return add_node(Op::transpose, graph::TransposeAttrs{order}, {x}, {{DType::f32, Shape(dims)}});
}

Value concat(std::span<const Value> parts, int axis) {
  if (parts.empty()) throw ShapeError("concat: no parts");
  const Shape& first = parts.front().shape();
  const int along = positive_axis("concat", first, axis);
  int64_t total = 0;
  for (const Value& part : parts) {
    require_dtype("concat", "part", part, DType::f32);
    const Shape& shape = part.shape();
    if (shape.rank() != first.rank() || shape.with(along, 0) != first.with(along, 0)) {
      reject("concat", "part '" + part.name() + "' " + shape.str() + " does not fit the first part " + first.str() +
                           " along axis " + std::to_string(axis));
    }
    total += shape[along];
  }
  return add_node(Op::concat, graph::AxisAttrs{along, 0}, {parts.begin(), parts.end()},
                  {{DType::f32, first.with(along, total)}});
}

Value slice(Value x, int axis, int64_t begin, int64_t size) {
  require_dtype("slice", "x", x, DType::f32);
  const int along = positive_axis("slice", x.shape(), axis);
  if (begin < 0 || size < 0 || begin + size > x.shape()[along]) {
    reject("slice", "[" + std::to_string(begin) + ", " + std::to_string(begin + size) + ") is outside axis " +
                        std::to_string(axis) + " of x " + x.shape().str());
  }
  return add_node(Op::slice, graph::AxisAttrs{along, begin}, {x}, {{DType::f32, x.shape().with(along, size)}});
}

Value identity(Value x) { return add_node(Op::identity, graph::NoAttrs{}, {x}, {x.type()}); }

void reshape_gradient(GradientRuleContext& g) { g.set(0, reshape(g.dy(), g.input(0).shape())); }

void transpose_gradient(GradientRuleContext& g) {
  const Shape order = g.node().as<graph::TransposeAttrs>().permutation;
  std::vector<int64_t> inverse(static_cast<size_t>(order.rank()));
  for (int axis = 0; axis < order.rank(); ++axis) inverse[static_cast<size_t>(order[axis])] = axis;
  g.set(0, transpose(g.dy(), inverse));
}

void concat_gradient(GradientRuleContext& g) {
  const int axis = g.node().as<graph::AxisAttrs>().axis;
  const size_t parts = g.node().inputs.size();
  int64_t begin = 0;
  for (size_t i = 0; i < parts; ++i) {
    const int64_t size = g.input(i).shape()[axis];
    g.set(i, slice(g.dy(), axis, begin, size));
    begin += size;
  }
}

void slice_gradient(GradientRuleContext& g) {
  const graph::AxisAttrs attrs = g.node().as<graph::AxisAttrs>();
  g.set(0, add_node(Op::pad_slice, attrs, {g.dy()}, {g.input(0).type()}));
}

}  // namespace lockstep::ops
