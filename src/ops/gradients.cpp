#include <vector>

#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {
namespace {

/// Finds the nodes between the targets and the loss; only those get gradients.
std::vector<bool> depends_on(const Graph& graph, std::span<const Value> targets, int32_t last) {
  std::vector<bool> reached(static_cast<size_t>(last) + 1, false);
  for (const Value& target : targets) {
    if (target.id().node <= last) reached[static_cast<size_t>(target.id().node)] = true;
  }
  for (int32_t i = 0; i <= last; ++i) {
    for (const ValueId& input : graph.node(i).inputs) {
      if (reached[static_cast<size_t>(input.node)]) reached[static_cast<size_t>(i)] = true;
    }
  }
  return reached;
}

/// Marks nodes added during its life as part of the backward pass.
class BackwardMark {
 public:
  explicit BackwardMark(Graph& graph) : graph_(graph) { graph_.set_backward(true); }
  ~BackwardMark() { graph_.set_backward(false); }
  BackwardMark(const BackwardMark&) = delete;
  BackwardMark& operator=(const BackwardMark&) = delete;

 private:
  Graph& graph_;
};

class Backward {
 public:
  Backward(Graph& graph, int32_t last) : graph_(graph), grads_(static_cast<size_t>(last) + 1) {
    for (int32_t i = 0; i <= last; ++i) grads_[static_cast<size_t>(i)].resize(graph.node(i).outputs.size());
  }

  Value& at(ValueId id) { return grads_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]; }

  void accumulate(ValueId id, Value gradient) {
    Value& sum = at(id);
    sum = sum.valid() ? add(sum, gradient) : gradient;
  }

  void visit(int32_t index, const std::vector<bool>& needed) {
    std::vector<Value>& arrived = grads_[static_cast<size_t>(index)];
    bool any = false;
    for (const Value& gradient : arrived) any = any || gradient.valid();
    const std::vector<ValueId> inputs = graph_.node(index).inputs;
    if (!any || inputs.empty()) return;
    const OpDef& op = definition(graph_.node(index).op);
    if (op.gradient == nullptr) reject(op.name, "'" + graph_.node(index).name + "' has no gradient");
    std::vector<Value> to_inputs(inputs.size());
    const graph::Scope scope(graph_, graph_.node(index).name);
    GradientRuleContext context(graph_, index, arrived, to_inputs);
    op.gradient(context);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool wanted = needed[static_cast<size_t>(inputs[i].node)];
      if (wanted && to_inputs[i].valid()) accumulate(inputs[i], to_inputs[i]);
    }
  }

 private:
  Graph& graph_;
  std::vector<std::vector<Value>> grads_;
};

}  // namespace

std::vector<Value> gradients(Value loss, std::span<const Value> targets) {
  if (loss.shape().rank() != 0) {
    reject("gradients", "loss '" + loss.name() + "' has shape " + loss.shape().str() + ", must be a scalar []");
  }
  Graph& graph = loss.graph();
  const BackwardMark mark(graph);
  const graph::Scope scope(graph, "gradients");
  const int32_t last = loss.id().node;
  const std::vector<bool> needed = depends_on(graph, targets, last);
  Backward backward(graph, last);
  backward.at(loss.id()) = constant(graph, Shape{}, 1.0F);
  for (int32_t i = last; i >= 0; --i) {
    if (needed[static_cast<size_t>(i)]) backward.visit(i, needed);
  }
  std::vector<Value> result;
  for (const Value& target : targets) {
    const bool reached = target.id().node <= last && backward.at(target.id()).valid();
    result.push_back(reached ? backward.at(target.id()) : constant(graph, target.shape(), 0.0F));
  }
  return result;
}

std::vector<Value> gradients(Value loss) {
  std::vector<Value> targets;
  Graph& graph = loss.graph();
  for (size_t i = 0; i < graph.parameters().size(); ++i) targets.push_back(graph.parameter_value(static_cast<int>(i)));
  return gradients(loss, targets);
}

}  // namespace lockstep::ops
