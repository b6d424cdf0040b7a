// Dead nodes, common subexpressions, and gradients that need a node of their own.
#include <map>
#include <set>

#include "graph/rewrite.h"

namespace lockstep::graph {

Work remove_dead_nodes(const Work& work) {
  const auto& nodes = work.graph.nodes();
  std::vector<bool> live(nodes.size(), false);
  for (const ValueId id : work.outputs) live[static_cast<size_t>(id.node)] = true;
  for (const ValueId id : work.gradients) live[static_cast<size_t>(id.node)] = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const ValueId id : nodes[i].inputs) live[static_cast<size_t>(id.node)] = true;
  }
  Rewriter rewriter(work);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool stays = live[i] || nodes[i].op == Op::input || nodes[i].op == Op::parameter;
    if (stays) rewriter.keep(static_cast<int32_t>(i));
  }
  return std::move(rewriter).finish();
}

namespace {

bool same_work(const Node& a, const Node& b) {
  if (a.op != b.op || a.inputs != b.inputs || !(a.attrs == b.attrs) || a.outputs.size() != b.outputs.size()) {
    return false;
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (a.outputs[i].type != b.outputs[i].type) return false;
  }
  return true;
}

}  // namespace

Work merge_common_subexpressions(const Work& work) {
  Rewriter rewriter(work);
  std::map<std::pair<Op, std::vector<ValueId>>, std::vector<int32_t>> seen;
  for (int32_t i = 0; i < static_cast<int32_t>(work.graph.nodes().size()); ++i) {
    const Node& node = work.graph.node(i);
    if (node.op == Op::input || node.op == Op::parameter) {
      rewriter.keep(i);
      continue;
    }
    Node moved = node;
    moved.inputs = rewriter.mapped(node.inputs);
    auto& candidates = seen[{moved.op, moved.inputs}];
    int32_t same = -1;
    for (const int32_t candidate : candidates) {
      if (same_work(rewriter.result().node(candidate), moved)) same = candidate;
    }
    if (same < 0) {
      candidates.push_back(rewriter.keep(i));
      continue;
    }
    for (int32_t output = 0; output < static_cast<int32_t>(node.outputs.size()); ++output) {
      rewriter.map({i, output}, {same, output});
    }
  }
  return std::move(rewriter).finish();
}

Work isolate_gradients(const Work& work) {
  Rewriter rewriter(work);
  for (int32_t i = 0; i < static_cast<int32_t>(work.graph.nodes().size()); ++i) rewriter.keep(i);
  Work result = std::move(rewriter).finish();
  const auto uses = count_uses(result);
  std::set<ValueId> taken(result.outputs.begin(), result.outputs.end());
  for (ValueId& gradient : result.gradients) {
    const Node& node = result.graph.node(gradient);
    const bool source = node.op == Op::input || node.op == Op::parameter || node.op == Op::constant;
    const bool alias = node.op == Op::reshape;
    const bool shared = !taken.insert(gradient).second ||
                        uses[static_cast<size_t>(gradient.node)][static_cast<size_t>(gradient.output)] > 1;
    if (!source && !alias && !shared) continue;
    const Output type{node.outputs[static_cast<size_t>(gradient.output)].type, {}};
    Node copy{Op::identity, node.name + "/copy", NoAttrs{}, {}, {type}, true};
    gradient = {result.graph.copy(copy, {gradient}), 0};
  }
  return result;
}

Work optimize(Work work, const backend::Backend& backend) {
  work = remove_dead_nodes(work);
  work = merge_common_subexpressions(work);
  work = fuse(work);
  work = remove_dead_nodes(work);
  work = assign_layouts(work, backend);
  return isolate_gradients(remove_dead_nodes(work));
}

}  // namespace lockstep::graph
