// The passes that turn a graph as written into a graph to run. Each takes a Graph with the values it must keep and
// returns a new pair. None changes the results, except for rounding if a lower precision was requested.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "lockstep/graph.h"

namespace lockstep::program {

/// A graph and the values wanted from it: outputs for the caller, then one gradient per parameter (or none at all).
struct Work {
  graph::Graph graph;
  std::vector<graph::ValueId> outputs;
  std::vector<graph::ValueId> gradients;
};

/// Drops the nodes that no wanted value depends on; inputs stay.
Work remove_dead_nodes(const Work& work);
/// Merges nodes that compute the same thing from the same values.
Work merge_common_subexpressions(const Work& work);
/// Folds constants into scalings and scalings into each other.
Work simplify(const Work& work);
/// Folds bias and activation into matrix products and convolutions, bias gradients into weight gradients, and
/// softmax with cross entropy.
Work fuse(const Work& work);
/// Gives every value the element type that its node wants on this backend, with casts (reorders that change the type)
/// in between. The only pass that changes results: the narrower type rounds.
Work assign_precision(const Work& work, const backend::Backend& backend);
/// Gives every value the layout that its node wants on this backend, with reorders in between. One reorder also does a
/// cast on the way.
Work assign_layouts(const Work& work, const backend::Backend& backend);
/// Makes each gradient the plain output of its own node, so that the kernel can write it straight into the gradient
/// buffer.
Work isolate_gradients(const Work& work);

/// Runs all of the above in order.
Work optimize(Work work, const backend::Backend& backend);

}  // namespace lockstep::program
