// Simplifies arithmetic with constants, of which backward passes have much: a broadcast or scaled constant becomes a
// constant, a product with a constant becomes a scaling, consecutive scalings merge, and a scaling by one disappears.
#include <optional>

#include "program/rewrite.h"

namespace lockstep::program {
namespace {

class Simplification {
 public:
  explicit Simplification(const Work& work) : work_(work), rewriter_(work) {}

  Work run() && {
    for (int32_t i = 0; i < static_cast<int32_t>(work_.graph.nodes().size()); ++i) {
      if (!fold_constant(i) && !product_as_scale(i) && !join_scales(i)) rewriter_.keep(i);
    }
    return std::move(rewriter_).finish();
  }

 private:
  [[nodiscard]] const graph::Node& node(int32_t i) const { return work_.graph.node(i); }
  [[nodiscard]] const graph::Node& now(graph::ValueId old) { return rewriter_.result().node(rewriter_.mapped(old)); }

  /// Returns the one value of a tensor that is known to be constant.
  std::optional<float> constant(graph::ValueId old) {
    const graph::Node& source = now(old);
    if (source.op != graph::Op::constant) return std::nullopt;
    return source.as<graph::ScalarAttrs>().value;
  }

  bool replace(int32_t i, graph::Op op, float value, std::vector<graph::ValueId> inputs) {
    const graph::Node& old = node(i);
    const graph::Node fresh{op, old.name, graph::ScalarAttrs{value}, {}, old.outputs, old.backward};
    rewriter_.map({i, 0}, {rewriter_.result().copy(fresh, std::move(inputs)), 0});
    return true;
  }

  bool fold_constant(int32_t i) {
    const graph::Node& old = node(i);
    if (old.op != graph::Op::broadcast_to && old.op != graph::Op::reshape && old.op != graph::Op::scale) return false;
    const auto value = constant(old.inputs[0]);
    if (!value) return false;
    return replace(i, graph::Op::constant,
                   old.op == graph::Op::scale ? *value * old.as<graph::ScalarAttrs>().value : *value, {});
  }

  bool product_as_scale(int32_t i) {
    const graph::Node& old = node(i);
    if (old.op != graph::Op::mul) return false;
    for (const size_t k : {0U, 1U}) {
      const graph::ValueId other = old.inputs[1 - k];
      const auto value = constant(old.inputs[k]);
      if (!value || work_.graph.output(other).type != old.outputs[0].type) continue;
      return scale(i, other, *value);
    }
    return false;
  }

  bool join_scales(int32_t i) {
    const graph::Node& old = node(i);
    return old.op == graph::Op::scale && scale(i, old.inputs[0], old.as<graph::ScalarAttrs>().value);
  }

  bool scale(int32_t i, graph::ValueId of, float factor) {
    graph::ValueId source = rewriter_.mapped(of);
    if (const graph::Node& inner = rewriter_.result().node(source); inner.op == graph::Op::scale) {
      factor *= inner.as<graph::ScalarAttrs>().value;
      source = inner.inputs[0];
    }
    if (factor != 1.0F) return replace(i, graph::Op::scale, factor, {source});
    rewriter_.map({i, 0}, source);
    return true;
  }

  const Work& work_;
  Rewriter rewriter_;
};

}  // namespace

Work simplify(const Work& work) { return Simplification(work).run(); }

}  // namespace lockstep::program
