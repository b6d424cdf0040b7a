// Matrix products and biases.
#include "ops/rules.h"

namespace lockstep::ops {

Value matmul(Value a, Value b, bool trans_a, bool trans_b) {
  for (const auto& [argument, value] : {std::pair{"a", a}, std::pair{"b", b}}) {
    require_dtype("matmul", argument, value, DType::f32);
    require_rank("matmul", argument, value, 2);
  }
  const int64_t rows = a.shape()[trans_a ? 1 : 0];
  const int64_t inner_a = a.shape()[trans_a ? 0 : 1];
  const int64_t inner_b = b.shape()[trans_b ? 1 : 0];
  const int64_t columns = b.shape()[trans_b ? 0 : 1];
  if (inner_a != inner_b) {
    reject("matmul", "b '" + b.name() + "' " + b.shape().str() + (trans_b ? " transposed" : "") + " does not fit a '" +
                         a.name() + "' " + a.shape().str() + (trans_a ? " transposed" : "") + ": inner sizes " +
                         std::to_string(inner_a) + " and " + std::to_string(inner_b));
  }
  return add_node(Op::matmul, graph::MatMulAttrs{trans_a, trans_b, false, graph::Activation::none}, {a, b},
                  {{DType::f32, {rows, columns}}});
}

Value bias_add(Value x, Value bias) {
  require_dtype("bias_add", "x", x, DType::f32);
  require_dtype("bias_add", "bias", bias, DType::f32);
  if (x.shape().rank() < 2) reject("bias_add", "x " + x.shape().str() + " must have at least two axes");
  if (bias.shape() != Shape{x.shape()[1]}) {
    reject("bias_add", "bias " + bias.shape().str() + " does not fit x " + x.shape().str() + ": must be [" +
                           std::to_string(x.shape()[1]) + "]");
  }
  return add_node(Op::bias_add, graph::NoAttrs{}, {x, bias}, {x.type()});
}

Value bias_grad(Value dy) {
  if (dy.shape().rank() < 2) reject("bias_grad", "dy " + dy.shape().str() + " must have at least two axes");
  return add_node(Op::bias_grad, graph::NoAttrs{}, {dy}, {{DType::f32, {dy.shape()[1]}}});
}

void matmul_gradient(GradientRuleContext& g) {
  const auto& [trans_a, trans_b, bias, activation] = g.node().as<graph::MatMulAttrs>();
  const bool ta = trans_a;
  const bool tb = trans_b;
  const Value a = g.input(0);
  const Value b = g.input(1);
  g.set(0, ta ? matmul(b, g.dy(), tb, true) : matmul(g.dy(), b, false, !tb));
  g.set(1, tb ? matmul(g.dy(), a, true, ta) : matmul(a, g.dy(), !ta, false));
}

void bias_add_gradient(GradientRuleContext& g) {
  g.set(0, g.dy());
  g.set(1, bias_grad(g.dy()));
}

}  // namespace lockstep::ops
