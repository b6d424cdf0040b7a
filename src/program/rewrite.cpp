#include "program/rewrite.h"

namespace lockstep::program {

Rewriter::Rewriter(const Work& source) : source_(source), result_(source.graph.shell()) {
  map_.reserve(source.graph.nodes().size());
  for (const graph::Node& node : source.graph.nodes()) map_.emplace_back(node.outputs.size());
}

std::vector<graph::ValueId> Rewriter::mapped(const std::vector<graph::ValueId>& old) const {
  std::vector<graph::ValueId> now;
  now.reserve(old.size());
  for (const graph::ValueId id : old) now.push_back(mapped(id));
  return now;
}

int32_t Rewriter::keep(int32_t old) {
  const graph::Node& node = source().node(old);
  const int32_t index = result_.copy(node, mapped(node.inputs));
  for (int32_t output = 0; output < static_cast<int32_t>(node.outputs.size()); ++output) {
    map({old, output}, {index, output});
  }
  return index;
}

Work Rewriter::finish() && {
  std::vector<graph::ValueId> outputs = mapped(source_.outputs);
  std::vector<graph::ValueId> gradients = mapped(source_.gradients);
  return {std::move(result_), std::move(outputs), std::move(gradients)};
}

std::vector<std::vector<int>> count_uses(const Work& work) {
  std::vector<std::vector<int>> uses;
  for (const graph::Node& node : work.graph.nodes()) uses.emplace_back(node.outputs.size(), 0);
  const auto use = [&](graph::ValueId id) { ++uses[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]; };
  for (const graph::Node& node : work.graph.nodes()) {
    for (const graph::ValueId id : node.inputs) use(id);
  }
  for (const graph::ValueId id : work.outputs) use(id);
  for (const graph::ValueId id : work.gradients) use(id);
  return uses;
}

}  // namespace lockstep::program
