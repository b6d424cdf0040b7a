// Fusion: each rule looks at one node and may replace it by a richer form of the node that feeds it. A producer is
// replaced only if no other node uses its result.
#include <algorithm>
#include <optional>

#include "program/rewrite.h"

namespace lockstep::program {
namespace {

std::optional<graph::Activation> as_activation(graph::Op op) {
  switch (op) {
    case graph::Op::relu:
      return graph::Activation::relu;
    case graph::Op::tanh:
      return graph::Activation::tanh;
    case graph::Op::sigmoid:
      return graph::Activation::sigmoid;
    default:
      return std::nullopt;
  }
}

class Fusion {
 public:
  explicit Fusion(const Work& work) : work_(work), rewriter_(work), uses_(count_uses(work)) {}

  Work run() && {
    const auto count = static_cast<int32_t>(work_.graph.nodes().size());
    for (int32_t i = 0; i < count; ++i) {
      if (old(i).inputs.empty()) rewriter_.keep(i);  // sources first: a bias may be folded into an earlier node
    }
    for (int32_t i = 0; i < count; ++i) {
      if (!old(i).inputs.empty() && !apply_a_rule(i)) rewriter_.keep(i);
    }
    return std::move(rewriter_).finish();
  }

 private:
  bool apply_a_rule(int32_t i) {
    return fold_bias(i) || fold_activation(i) || fold_bias_grad(i) || fold_relu_into_pool_grad(i) ||
           fold_relu_into_dropout_grad(i) || join_cross_entropy(i) || join_cross_entropy_grad(i);
  }

  [[nodiscard]] const graph::Node& old(int32_t i) const { return work_.graph.node(i); }
  [[nodiscard]] bool used_once(graph::ValueId id) const {
    return uses_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)] == 1;
  }
  graph::Node& fused(graph::ValueId old_value) { return rewriter_.result().edit(rewriter_.mapped(old_value).node); }

  /// bias_add(matmul or conv2d, bias) -> the producer takes the bias as a third input.
  bool fold_bias(int32_t i) {
    const graph::Node& node = old(i);
    if (node.op != graph::Op::bias_add || !used_once(node.inputs[0])) return false;
    if (rewriter_.mapped(node.inputs[1]).node >= rewriter_.mapped(node.inputs[0]).node) return false;
    graph::Node& target = fused(node.inputs[0]);
    if (auto* dense = std::get_if<graph::MatMulAttrs>(&target.attrs);
        dense != nullptr && target.op == graph::Op::matmul) {
      if (dense->bias || dense->activation != graph::Activation::none) return false;
      dense->bias = true;
    } else if (auto* conv = std::get_if<graph::ConvAttrs>(&target.attrs);
               conv != nullptr && target.op == graph::Op::conv2d) {
      if (conv->bias || conv->activation != graph::Activation::none) return false;
      conv->bias = true;
    } else {
      return false;
    }
    target.inputs.push_back(rewriter_.mapped(node.inputs[1]));
    rewriter_.map({i, 0}, rewriter_.mapped(node.inputs[0]));
    return true;
  }

  bool fold_activation(int32_t i) {
    const graph::Node& node = old(i);
    const auto activation = as_activation(node.op);
    if (!activation || !used_once(node.inputs[0])) return false;
    graph::Node& target = fused(node.inputs[0]);
    graph::Activation* slot = nullptr;
    if (target.op == graph::Op::matmul) slot = &std::get<graph::MatMulAttrs>(target.attrs).activation;
    if (target.op == graph::Op::conv2d) slot = &std::get<graph::ConvAttrs>(target.attrs).activation;
    if (slot == nullptr || *slot != graph::Activation::none) return false;
    *slot = *activation;
    rewriter_.map({i, 0}, rewriter_.mapped(node.inputs[0]));
    return true;
  }

  /// bias_grad(dy) beside conv2d_grad_weights(x, dy): the latter gains a second output.
  bool fold_bias_grad(int32_t i) {
    const graph::Node& node = old(i);
    const bool is_weights = node.op == graph::Op::conv2d_grad_weights;
    const bool is_bias = node.op == graph::Op::bias_grad;
    if (!is_weights && !is_bias) return false;
    const graph::ValueId dy = is_weights ? node.inputs[1] : node.inputs[0];
    const graph::Op partner_op = is_weights ? graph::Op::bias_grad : graph::Op::conv2d_grad_weights;
    const int32_t partner = find_user(partner_op, dy);
    if (partner < 0) return false;
    if (is_bias) return defer(i);
    const int32_t index = rewriter_.keep(i);
    graph::Node& joined = rewriter_.result().edit(index);
    joined.outputs.push_back(old(partner).outputs[0]);
    std::get<graph::ConvAttrs>(joined.attrs).bias = true;
    rewriter_.map({partner, 0}, {index, 1});
    return true;
  }

  /// Returns true if a bias_grad that comes before its partner may be dropped here, to be mapped when the partner is
  /// met: no other node needs it.
  [[nodiscard]] bool defer(int32_t i) const {
    for (const graph::Node& node : work_.graph.nodes()) {
      if (std::find(node.inputs.begin(), node.inputs.end(), graph::ValueId{i, 0}) != node.inputs.end()) return false;
    }
    return true;
  }

  [[nodiscard]] int32_t find_user(graph::Op op, graph::ValueId dy) const {
    int32_t found = -1;
    for (int32_t i = 0; i < static_cast<int32_t>(work_.graph.nodes().size()); ++i) {
      const graph::Node& node = old(i);
      const size_t position = op == graph::Op::bias_grad ? 0 : 1;
      if (node.op != op || node.inputs[position] != dy) continue;
      if (op == graph::Op::bias_grad && !defer(i)) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }

  /// relu_grad(y, max_pool_grad(y, d)): if y is the output of a ReLU, the pool's gradient can apply the ReLU's zeros
  /// itself.
  bool fold_relu_into_pool_grad(int32_t i) {
    const graph::Node& node = old(i);
    if (node.op != graph::Op::relu_grad || !used_once(node.inputs[1])) return false;
    const graph::Node& pool = old(node.inputs[1].node);
    if (pool.op != graph::Op::max_pool_grad || pool.inputs[0] != node.inputs[0]) return false;
    std::get<graph::PoolAttrs>(fused(node.inputs[1]).attrs).through_relu = true;
    rewriter_.map({i, 0}, rewriter_.mapped(node.inputs[1]));
    return true;
  }

  /// relu_grad(y, dropout(d)) where z = dropout(y) uses the same mask: z is positive exactly where both pass d. So y
  /// need not be kept beside z, and the mask is not computed again.
  bool fold_relu_into_dropout_grad(int32_t i) {
    const graph::Node& node = old(i);
    if (node.op != graph::Op::relu_grad || !used_once(node.inputs[1])) return false;
    const graph::Node& masked = old(node.inputs[1].node);
    if (masked.op != graph::Op::dropout) return false;
    const auto& nodes = work_.graph.nodes();
    const auto forward = std::find_if(nodes.begin(), nodes.begin() + i, [&](const graph::Node& other) {
      return other.op == graph::Op::dropout && other.attrs == masked.attrs && other.inputs[0] == node.inputs[0];
    });
    if (forward == nodes.begin() + i) return false;
    const graph::ValueId z = rewriter_.mapped(graph::ValueId{static_cast<int32_t>(forward - nodes.begin()), 0});
    const float kept = 1.0F / (1.0F - masked.as<graph::RandomAttrs>().a);
    const graph::Node scaled{graph::Op::scale, masked.name,    graph::ScalarAttrs{kept}, {},
                             masked.outputs,   masked.backward};
    const int32_t larger = rewriter_.result().copy(scaled, {rewriter_.mapped(masked.inputs[0])});
    const int32_t index = rewriter_.result().copy(node, {z, {larger, 0}});
    rewriter_.map({i, 0}, {index, 0});
    return true;
  }

  /// cross_entropy(softmax(x), labels): the softmax node becomes softmax_cross_entropy; both results stay available.
  bool join_cross_entropy(int32_t i) {
    const graph::Node& node = old(i);
    if (node.op != graph::Op::cross_entropy) return false;
    const graph::Node& source = old(node.inputs[0].node);
    if (source.op != graph::Op::softmax) return false;
    graph::Node joined{graph::Op::softmax_cross_entropy,     node.name,    graph::NoAttrs{}, {},
                       {node.outputs[0], source.outputs[0]}, node.backward};
    const int32_t index =
        rewriter_.result().copy(joined, {rewriter_.mapped(source.inputs[0]), rewriter_.mapped(node.inputs[1])});
    rewriter_.map({i, 0}, {index, 0});
    rewriter_.map(node.inputs[0], {index, 1});
    return true;
  }

  /// softmax_grad(p, cross_entropy_grad(p, labels, d)) -> softmax_cross_entropy_grad(p, labels, d).
  bool join_cross_entropy_grad(int32_t i) {
    const graph::Node& node = old(i);
    if (node.op != graph::Op::softmax_grad) return false;
    const graph::Node& inner = old(node.inputs[1].node);
    if (inner.op != graph::Op::cross_entropy_grad || inner.inputs[0] != node.inputs[0]) return false;
    graph::Node joined{
        graph::Op::softmax_cross_entropy_grad, node.name, graph::NoAttrs{}, {}, node.outputs, node.backward};
    const int32_t index = rewriter_.result().copy(joined, rewriter_.mapped(inner.inputs));
    rewriter_.map({i, 0}, {index, 0});
    return true;
  }

  const Work& work_;
  Rewriter rewriter_;
  std::vector<std::vector<int>> uses_;
};

}  // namespace

Work fuse(const Work& work) { return Fusion(work).run(); }

}  // namespace lockstep::program
