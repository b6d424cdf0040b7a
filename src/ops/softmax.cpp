// Softmax, losses over classes, and the count of right answers.
#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

void require_scores_and_labels(std::string_view op, std::string_view argument, Value scores, Value labels) {
  require_dtype(op, argument, scores, DType::f32);
  require_rank(op, argument, scores, 2);
  require_dtype(op, "labels", labels, DType::i32);
  if (labels.shape() != Shape{scores.shape()[0]}) {
    reject(op, "labels " + labels.shape().str() + " do not fit " + std::string(argument) + " " + scores.shape().str() +
                   ": must be [" + std::to_string(scores.shape()[0]) + "]");
  }
}

}  // namespace

Value softmax(Value logits) {
  require_dtype("softmax", "logits", logits, DType::f32);
  require_rank("softmax", "logits", logits, 2);
  return add_node(Op::softmax, graph::NoAttrs{}, {logits}, {logits.type()});
}

Value cross_entropy(Value probabilities, Value labels) {
  require_scores_and_labels("cross_entropy", "probabilities", probabilities, labels);
  return add_node(Op::cross_entropy, graph::NoAttrs{}, {probabilities, labels}, {{DType::f32, labels.shape()}});
}

Value softmax_cross_entropy(Value logits, Value labels) {
  require_scores_and_labels("softmax_cross_entropy", "logits", logits, labels);
  return add_node(Op::softmax_cross_entropy, graph::NoAttrs{}, {logits, labels},
                  {{DType::f32, labels.shape()}, logits.type()});
}

Value correct(Value scores, Value labels) {
  require_scores_and_labels("correct", "scores", scores, labels);
  return add_node(Op::correct, graph::NoAttrs{}, {scores, labels}, {{DType::f32, labels.shape()}});
}

void softmax_gradient(GradientRuleContext& g) {
  g.set(0, add_node(Op::softmax_grad, graph::NoAttrs{}, {g.output(), g.dy()}, {g.dy().type()}));
}

void cross_entropy_gradient(GradientRuleContext& g) {
  const Value p = g.input(0);
  g.set(0, add_node(Op::cross_entropy_grad, graph::NoAttrs{}, {p, g.input(1), g.dy()}, {p.type()}));
}

void softmax_cross_entropy_gradient(GradientRuleContext& g) {
  if (g.dy(1).valid()) {
    reject("softmax_cross_entropy", "its probabilities have no gradient; use softmax and cross_entropy apart");
  }
  const Value p = g.output(1);
  g.set(0, add_node(Op::softmax_cross_entropy_grad, graph::NoAttrs{}, {p, g.input(1), g.dy(0)}, {p.type()}));
}

}  // namespace lockstep::ops
