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

  /// Where a value of the source now lives.
  [[nodiscard]] graph::ValueId mapped(graph::ValueId old) const {
    return map_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)];
  }
  [[nodiscard]] std::vector<graph::ValueId> mapped(const std::vector<graph::ValueId>& old) const;
  void map(graph::ValueId old, graph::ValueId replacement) {
    map_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)] = replacement;
  }
  /// Copies a node as it is, inputs mapped, and maps its outputs; gives its new index.
  int32_t keep(int32_t old);

  /// The rewritten work, its wanted values mapped.
  Work finish() &&;

 private:
  const Work& source_;
  graph::Graph result_;
  std::vector<std::vector<graph::ValueId>> map_;
};

/// How many inputs and wanted values use each output of each node.
std::vector<std::vector<int>> count_uses(const Work& work);

}  // namespace lockstep::program
