// Constants, random tensors and dropout.
#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {

Value constant(Graph& graph, const Shape& shape, float value) {
  return graph.add(Op::constant, name(Op::constant), graph::ScalarAttrs{value}, {}, {{{DType::f32, shape}, {}}});
}

Value random_uniform(Graph& graph, const Shape& shape, float low, float high) {
  return graph.add(Op::random_uniform, name(Op::random_uniform), graph::RandomAttrs{graph.next_stream(), low, high}, {},
                   {{{DType::f32, shape}, {}}});
}

Value random_normal(Graph& graph, const Shape& shape, float mean, float deviation) {
  return graph.add(Op::random_normal, name(Op::random_normal), graph::RandomAttrs{graph.next_stream(), mean, deviation},
                   {}, {{{DType::f32, shape}, {}}});
}

Value dropout(Value x, float rate) {
  require_dtype("dropout", "x", x, DType::f32);
  if (!(rate >= 0.0F && rate < 1.0F)) reject("dropout", "rate " + std::to_string(rate) + " must be in [0, 1)");
  return add_node(Op::dropout, graph::RandomAttrs{x.graph().next_stream(), rate, 0}, {x}, {x.type()});
}

void dropout_gradient(GradientRuleContext& g) {
  const graph::RandomAttrs attrs = g.node().as<graph::RandomAttrs>();
  g.set(0, add_node(Op::dropout, attrs, {g.dy()}, {g.dy().type()}));
}

}  // namespace lockstep::ops
