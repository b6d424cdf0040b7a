// Parts that the op families share: argument checks for the builders, and the interface of a gradient rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::ops {

using graph::Attrs;
using graph::Node;
using graph::Op;
using graph::Output;
using graph::ValueId;

/// Throws ShapeError "op: message".
[[noreturn]] void reject(std::string_view op, const std::string& message);
/// Throw a ShapeError that names op, argument and the value seen.
void require_dtype(std::string_view op, std::string_view argument, Value value, DType dtype);
void require_rank(std::string_view op, std::string_view argument, Value value, int rank);
void require_same_graph(std::string_view op, Value a, Value b);
void require_same_shape(std::string_view op, std::string_view a_name, Value a, std::string_view b_name, Value b);

/// Adds a node named like its op.
Value add_node(Op op, Attrs attrs, std::vector<Value> inputs, const std::vector<TensorType>& outputs);

/// Sums `x` down to `shape`, undoing a broadcast.
Value reduce_to(Value x, const Shape& shape);

/// Build backward ops, for gradient rules only. They take true gradients, which are zero in a layout's pad rows of the
/// batch. bias_grad sums over every axis but axis 1.
Value bias_grad(Value dy);
Value conv2d_grad_input(Value dy, Value weights, const Shape& input, const Window& window);
Value conv2d_grad_weights(Value x, Value dy, const Shape& weights, const Window& window);
Value max_pool_grad(Value x, Value dy, const Window& window);
Value avg_pool_grad(Value dy, const Shape& input, const Window& window);

/// The context of a gradient rule: the node, its values, and the gradient of each output.
class GradientRuleContext {
 public:
  GradientRuleContext(Graph& graph, int32_t node, std::vector<Value>& output_grads, std::vector<Value>& input_grads)
      : graph_(graph), node_(node), output_grads_(output_grads), input_grads_(input_grads) {}

  [[nodiscard]] const Node& node() const { return graph_.node(node_); }
  [[nodiscard]] Value input(size_t i) const { return graph_.value(node().inputs[i]); }
  [[nodiscard]] Value output(int i = 0) const { return graph_.value({node_, i}); }
  /// Returns the gradient of output i; invalid if there is none.
  [[nodiscard]] Value dy(size_t i = 0) const { return output_grads_[i]; }
  /// Sets the gradient of input i.
  void set(size_t i, Value gradient) { input_grads_[i] = gradient; }

 private:
  Graph& graph_;
  int32_t node_;
  std::vector<Value>& output_grads_;
  std::vector<Value>& input_grads_;
};

using GradientRule = void (*)(GradientRuleContext&);

}  // namespace lockstep::ops
