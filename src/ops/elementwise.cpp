// Elementwise ops of one and two arguments.
#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

Value unary(Op op, Value x, Attrs attrs = graph::NoAttrs{}) {
  require_dtype(name(op), "x", x, DType::f32);
  return add_node(op, attrs, {x}, {x.type()});
}

Value binary(Op op, Value a, Value b) {
  require_dtype(name(op), "a", a, DType::f32);
  require_dtype(name(op), "b", b, DType::f32);
  Shape shape;
  if (!broadcast(a.shape(), b.shape(), shape)) {
    reject(name(op), "a " + a.shape().str() + " and b " + b.shape().str() + " do not broadcast");
  }
  return add_node(op, graph::NoAttrs{}, {a, b}, {{DType::f32, shape}});
}

/// op(saved, dy), where `saved` is the op's input or output and has dy's shape.
Value unary_grad(Op op, Value saved, Value dy) {
  require_same_shape(name(op), "y", saved, "dy", dy);
  return add_node(op, graph::NoAttrs{}, {saved, dy}, {dy.type()});
}

/// dy where a >= b, else 0, in dy's shape.
Value max_grad(Value a, Value b, Value dy) {
  return add_node(Op::max_grad, graph::NoAttrs{}, {broadcast_to(a, dy.shape()), broadcast_to(b, dy.shape()), dy},
                  {dy.type()});
}

}  // namespace

Value relu(Value x) { return unary(Op::relu, x); }
Value tanh(Value x) { return unary(Op::tanh, x); }
Value sigmoid(Value x) { return unary(Op::sigmoid, x); }
Value softplus(Value x) { return unary(Op::softplus, x); }
Value exp(Value x) { return unary(Op::exp, x); }
Value log(Value x) { return unary(Op::log, x); }
Value sqrt(Value x) { return unary(Op::sqrt, x); }
Value square(Value x) { return unary(Op::square, x); }
Value neg(Value x) { return unary(Op::neg, x); }
Value abs(Value x) { return unary(Op::abs, x); }
Value scale(Value x, float factor) { return unary(Op::scale, x, graph::ScalarAttrs{factor}); }
Value add_scalar(Value x, float term) { return unary(Op::add_scalar, x, graph::ScalarAttrs{term}); }

Value add(Value a, Value b) { return binary(Op::add, a, b); }
Value sub(Value a, Value b) { return binary(Op::sub, a, b); }
Value mul(Value a, Value b) { return binary(Op::mul, a, b); }
Value div(Value a, Value b) { return binary(Op::div, a, b); }
Value maximum(Value a, Value b) { return binary(Op::maximum, a, b); }
Value minimum(Value a, Value b) { return binary(Op::minimum, a, b); }

void relu_gradient(GradientRuleContext& g) { g.set(0, unary_grad(Op::relu_grad, g.output(), g.dy())); }
void tanh_gradient(GradientRuleContext& g) { g.set(0, unary_grad(Op::tanh_grad, g.output(), g.dy())); }
void sigmoid_gradient(GradientRuleContext& g) { g.set(0, unary_grad(Op::sigmoid_grad, g.output(), g.dy())); }
void softplus_gradient(GradientRuleContext& g) { g.set(0, unary_grad(Op::softplus_grad, g.input(0), g.dy())); }
void abs_gradient(GradientRuleContext& g) { g.set(0, unary_grad(Op::abs_grad, g.input(0), g.dy())); }
void exp_gradient(GradientRuleContext& g) { g.set(0, mul(g.dy(), g.output())); }
void log_gradient(GradientRuleContext& g) { g.set(0, div(g.dy(), g.input(0))); }
void sqrt_gradient(GradientRuleContext& g) { g.set(0, scale(div(g.dy(), g.output()), 0.5F)); }
void square_gradient(GradientRuleContext& g) { g.set(0, scale(mul(g.dy(), g.input(0)), 2.0F)); }
void neg_gradient(GradientRuleContext& g) { g.set(0, neg(g.dy())); }
void pass_gradient(GradientRuleContext& g) { g.set(0, g.dy()); }
void scale_gradient(GradientRuleContext& g) { g.set(0, scale(g.dy(), g.node().as<graph::ScalarAttrs>().value)); }

void add_gradient(GradientRuleContext& g) {
  g.set(0, reduce_to(g.dy(), g.input(0).shape()));
  g.set(1, reduce_to(g.dy(), g.input(1).shape()));
}

void sub_gradient(GradientRuleContext& g) {
  g.set(0, reduce_to(g.dy(), g.input(0).shape()));
  g.set(1, reduce_to(neg(g.dy()), g.input(1).shape()));
}

void mul_gradient(GradientRuleContext& g) {
  g.set(0, reduce_to(mul(g.dy(), g.input(1)), g.input(0).shape()));
  g.set(1, reduce_to(mul(g.dy(), g.input(0)), g.input(1).shape()));
}

void div_gradient(GradientRuleContext& g) {
  g.set(0, reduce_to(div(g.dy(), g.input(1)), g.input(0).shape()));
  g.set(1, reduce_to(neg(div(mul(g.dy(), g.output()), g.input(1))), g.input(1).shape()));
}

void maximum_gradient(GradientRuleContext& g) {
  const Value to_a = max_grad(g.input(0), g.input(1), g.dy());
  g.set(0, reduce_to(to_a, g.input(0).shape()));
  g.set(1, reduce_to(sub(g.dy(), to_a), g.input(1).shape()));
}

void minimum_gradient(GradientRuleContext& g) {
  const Value to_a = max_grad(g.input(1), g.input(0), g.dy());
  g.set(0, reduce_to(to_a, g.input(0).shape()));
  g.set(1, reduce_to(sub(g.dy(), to_a), g.input(1).shape()));
}

void reduce_max_gradient(GradientRuleContext& g) {
  const Value x = g.input(0);
  std::vector<int64_t> kept(x.shape().dims().begin(), x.shape().dims().end());
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if ((g.node().as<graph::ReduceAttrs>().axes >> axis & 1U) != 0) kept[static_cast<size_t>(axis)] = 1;
  }
  const Value largest = reshape(g.output(), kept);
  const Value winners = max_grad(x, largest, constant(x.graph(), x.shape(), 1.0F));
  const Value ties = reduce_to(winners, Shape(kept));
  g.set(0, mul(winners, div(reshape(g.dy(), kept), ties)));
}

}  // namespace lockstep::ops
