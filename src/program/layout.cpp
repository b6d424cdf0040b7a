// Layout assignment. Visits nodes in order; each node says which layouts it wants, given those of its inputs. Inputs in
// another layout get a reorder (one per value and layout). Wanted values end up plain.
#include <map>
#include <set>

#include "program/rewrite.h"

namespace lockstep::program {
namespace {

class LayoutAssignment {
 public:
  LayoutAssignment(const Work& work, const backend::Backend& backend)
      : work_(work), backend_(backend), rewriter_(work) {}

  Work run() && {
    std::set<int32_t> wanted;
    for (const auto* ends : {&work_.outputs, &work_.gradients}) {
      for (const graph::ValueId id : *ends) wanted.insert(id.node);
    }
    for (int32_t i = 0; i < static_cast<int32_t>(work_.graph.nodes().size()); ++i) {
      place(i);
      if (wanted.contains(i)) make_plain(i);  // at once, so that a gradient is final as early as it can be
    }
    std::vector<graph::ValueId> outputs = plain(work_.outputs);
    std::vector<graph::ValueId> gradients = plain(work_.gradients);
    return {std::move(rewriter_.result()), std::move(outputs), std::move(gradients)};
  }

 private:
  void place(int32_t i) {
    const graph::Node& node = work_.graph.node(i);
    graph::Node moved = node;
    moved.inputs = rewriter_.mapped(node.inputs);
    const auto choice = backend_.layouts({rewriter_.result(), moved});
    for (size_t k = 0; k < moved.inputs.size(); ++k) {
      moved.inputs[k] = in_layout(moved.inputs[k], choice ? choice->inputs[k] : graph::Layout{});
    }
    for (size_t k = 0; k < moved.outputs.size(); ++k)
      moved.outputs[k].layout = choice ? choice->outputs[k] : graph::Layout{};
    const int32_t index = rewriter_.result().copy(moved, moved.inputs);
    for (int32_t k = 0; k < static_cast<int32_t>(moved.outputs.size()); ++k) rewriter_.map({i, k}, {index, k});
  }

  void make_plain(int32_t old) {
    const auto outputs = static_cast<int32_t>(work_.graph.node(old).outputs.size());
    for (int32_t k = 0; k < outputs; ++k) in_layout(rewriter_.mapped(graph::ValueId{old, k}), {});
  }

  std::vector<graph::ValueId> plain(const std::vector<graph::ValueId>& old) {
    std::vector<graph::ValueId> now;
    now.reserve(old.size());
    for (const graph::ValueId id : old) now.push_back(in_layout(rewriter_.mapped(id), {}));
    return now;
  }

  /// Returns the value in the given layout, through a reorder if needed.
  graph::ValueId in_layout(graph::ValueId id, const graph::Layout& layout) {
    const graph::Layout now = rewriter_.result().output(id).layout;
    if (now == layout) return id;
    // Goes from blocks of images to blocks of channels, or back, through plain order, which every reorder supports.
    if (!now.plain() && !layout.plain() && now.kind != layout.kind) id = in_layout(id, {});
    const graph::Output output = rewriter_.result().output(id);
    auto [entry, fresh] = reordered_.try_emplace({id, layout.kind, layout.block});
    if (fresh) {
      const graph::Node& source = rewriter_.result().node(id);
      graph::Node reorder{graph::Op::reorder,      source.name + "/" + layout.str(),
                          graph::NoAttrs{},        {},
                          {{output.type, layout}}, source.backward};
      entry->second = {rewriter_.result().copy(reorder, {before_cast(id, layout)}), 0};
    }
    return entry->second;
  }

  /// Merges a cast and the following change of layout into one reorder from the cast's input. Kernels for the
  /// batch-blocked layout do only one of the two at a time.
  graph::ValueId before_cast(graph::ValueId id, const graph::Layout& layout) {
    const graph::Graph& graph = rewriter_.result();
    const bool blocks_batch = layout.kind == graph::Layout::Kind::batch_blocked ||
                              graph.output(id).layout.kind == graph::Layout::Kind::batch_blocked;
    return graph.node(id).op == graph::Op::reorder && !blocks_batch ? graph.node(id).inputs[0] : id;
  }

  const Work& work_;
  const backend::Backend& backend_;
  Rewriter rewriter_;
  std::map<std::tuple<graph::ValueId, graph::Layout::Kind, int>, graph::ValueId> reordered_;
};

}  // namespace

Work assign_layouts(const Work& work, const backend::Backend& backend) { return LayoutAssignment(work, backend).run(); }

}  // namespace lockstep::program
