// Copying a graph node by node with replacements: the mechanics that all passes share.
#pragma once

#include <vector>

#include "program/passes.h"

namespace lockstep::program {

class Rewriter {
 public:
  explicit Rewriter(const Work& source);

  [[nodiscard]] const graph::Graph& source() const { return source_.graph; }
  graph::Graph& result() { return result_; }

  /// Returns the rewritten value of a source value.
  [[nodiscard]] graph::ValueId mapped(graph::ValueId old) const {
    return map_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)];
  }
  [[nodiscard]] std::vector<graph::ValueId> mapped(const std::vector<graph::ValueId>& old) const;
  void map(graph::ValueId old, graph::ValueId replacement) {
    map_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)] = replacement;
  }
  /// Copies a node unchanged, with inputs mapped, and maps its outputs. Returns its new index.
  int32_t keep(int32_t old);

  /// Returns the rewritten work, with its wanted values mapped.
  Work finish() &&;

 private:
  const Work& source_;
  graph::Graph result_;
  std::vector<std::vector<graph::ValueId>> map_;
};

/// Counts the inputs and wanted values that use each output of each node.
std::vector<std::vector<int>> count_uses(const Work& work);

}  // namespace lockstep::program
