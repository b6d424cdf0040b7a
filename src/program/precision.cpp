// Precision assignment. Visits nodes in order; each node says which element types it wants, given those of its inputs.
// Inputs of another type get a cast (one per value and type). Wanted values end up in the type they were built with.
#include <map>
#include <set>

#include "program/rewrite.h"

namespace lockstep::program {
namespace {

class PrecisionAssignment {
 public:
  PrecisionAssignment(const Work& work, const backend::Backend& backend)
      : work_(work), backend_(backend), rewriter_(work) {}

  Work run() && {
    std::set<graph::ValueId> wanted;
    for (const auto* ends : {&work_.outputs, &work_.gradients}) wanted.insert(ends->begin(), ends->end());
    for (int32_t i = 0; i < static_cast<int32_t>(work_.graph.nodes().size()); ++i) {
      place(i);
      for (int32_t k = 0; k < static_cast<int32_t>(work_.graph.node(i).outputs.size()); ++k) {
        if (wanted.contains({i, k})) as_built({i, k});  // at once, so that a gradient is final as early as it can be
      }
    }
    std::vector<graph::ValueId> outputs = as_built(work_.outputs);
    std::vector<graph::ValueId> gradients = as_built(work_.gradients);
    return {std::move(rewriter_.result()), std::move(outputs), std::move(gradients)};
  }

 private:
  void place(int32_t i) {
    const graph::Node& node = work_.graph.node(i);
    graph::Node moved = node;
    moved.inputs = rewriter_.mapped(node.inputs);
    const auto choice = backend_.precisions({rewriter_.result(), moved});
    for (size_t k = 0; k < moved.inputs.size(); ++k) {
      const DType built = work_.graph.output(node.inputs[k]).type.dtype;
      moved.inputs[k] = in_type(moved.inputs[k], choice ? choice->inputs[k] : built);
    }
    for (size_t k = 0; choice && k < moved.outputs.size(); ++k) moved.outputs[k].type.dtype = choice->outputs[k];
    const int32_t index = rewriter_.result().copy(moved, moved.inputs);
    for (int32_t k = 0; k < static_cast<int32_t>(moved.outputs.size()); ++k) rewriter_.map({i, k}, {index, k});
  }

  graph::ValueId as_built(graph::ValueId old) {
    return in_type(rewriter_.mapped(old), work_.graph.output(old).type.dtype);
  }

  std::vector<graph::ValueId> as_built(const std::vector<graph::ValueId>& old) {
    std::vector<graph::ValueId> now;
    now.reserve(old.size());
    for (const graph::ValueId id : old) now.push_back(as_built(id));
    return now;
  }

  /// Returns the value in the given type, through a cast if needed.
  graph::ValueId in_type(graph::ValueId id, DType dtype) {
    graph::Output output = rewriter_.result().output(id);
    if (output.type.dtype == dtype) return id;
    auto [entry, fresh] = cast_.try_emplace({id, dtype});
    if (fresh) {
      const graph::Node& source = rewriter_.result().node(id);
      output.type.dtype = dtype;
      const std::string suffix = id.output == 0 ? "/" : "/" + std::to_string(id.output) + "_";
      const graph::Node cast{graph::Op::reorder, source.name + suffix + std::string(name(dtype)),
                             graph::NoAttrs{},   {},
                             {output},           source.backward};
      entry->second = {rewriter_.result().copy(cast, {id}), 0};
    }
    return entry->second;
  }

  const Work& work_;
  const backend::Backend& backend_;
  Rewriter rewriter_;
  std::map<std::pair<graph::ValueId, DType>, graph::ValueId> cast_;
};

}  // namespace

Work assign_precision(const Work& work, const backend::Backend& backend) {
  return PrecisionAssignment(work, backend).run();
}

}  // namespace lockstep::program
