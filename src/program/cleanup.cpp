// Passes that drop dead nodes, merge common subexpressions, and give each gradient its own node.
#include <map>

#include "program/rewrite.h"

namespace lockstep::program {

Work remove_dead_nodes(const Work& work) {
  const auto& nodes = work.graph.nodes();
  std::vector<bool> live(nodes.size(), false);
  for (const graph::ValueId id : work.outputs) live[static_cast<size_t>(id.node)] = true;
  for (const graph::ValueId id : work.gradients) live[static_cast<size_t>(id.node)] = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const graph::ValueId id : nodes[i].inputs) live[static_cast<size_t>(id.node)] = true;
  }
  Rewriter rewriter(work);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool stays = live[i] || nodes[i].op == graph::Op::input || nodes[i].op == graph::Op::parameter;
    if (stays) rewriter.keep(static_cast<int32_t>(i));
  }
  return std::move(rewriter).finish();
}

namespace {

bool same_work(const graph::Node& a, const graph::Node& b) {
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
  std::map<std::pair<graph::Op, std::vector<graph::ValueId>>, std::vector<int32_t>> seen;
  for (int32_t i = 0; i < static_cast<int32_t>(work.graph.nodes().size()); ++i) {
    const graph::Node& node = work.graph.node(i);
    if (node.op == graph::Op::input || node.op == graph::Op::parameter) {
      rewriter.keep(i);
      continue;
    }
    graph::Node moved = node;
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

namespace {

/// Returns true if a gradient cannot be written straight into its buffer: no kernel makes it, or another node or output
/// uses it too.
bool needs_copy(const Work& work, graph::ValueId gradient, int uses) {
  const graph::Op op = work.graph.node(gradient).op;
  const bool made =
      op != graph::Op::input && op != graph::Op::parameter && op != graph::Op::constant && op != graph::Op::reshape;
  return !made || uses > 1;
}

}  // namespace

Work isolate_gradients(const Work& work) {
  const auto uses = count_uses(work);
  std::map<int32_t, std::vector<size_t>> made_by;  // node -> the gradients it makes
  for (size_t i = 0; i < work.gradients.size(); ++i) made_by[work.gradients[i].node].push_back(i);
  Rewriter rewriter(work);
  std::vector<graph::ValueId> gradients(work.gradients.size());
  for (int32_t node = 0; node < static_cast<int32_t>(work.graph.nodes().size()); ++node) {
    rewriter.keep(node);
    for (const size_t i : made_by[node]) {
      const graph::ValueId old = work.gradients[i];
      gradients[i] = rewriter.mapped(old);
      if (!needs_copy(work, old, uses[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)])) continue;
      const graph::Output plain{work.graph.output(old).type, {}};
      const graph::Node copy{graph::Op::identity,
                             work.graph.node(old).name + "/to_" + work.graph.parameters()[i].name,
                             graph::NoAttrs{},
                             {},
                             {plain},
                             true};
      gradients[i] = {rewriter.result().copy(copy, {gradients[i]}), 0};
    }
  }
  Work result = std::move(rewriter).finish();
  result.gradients = std::move(gradients);
  return result;
}

Work optimize(Work work, const backend::Backend& backend) {
  work = remove_dead_nodes(work);
  work = merge_common_subexpressions(work);
  work = remove_dead_nodes(simplify(work));
  work = fuse(work);
  work = remove_dead_nodes(work);
  work = assign_precision(work, backend);
  work = assign_layouts(work, backend);
  return isolate_gradients(remove_dead_nodes(work));
}

}  // namespace lockstep::program
