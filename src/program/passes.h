// The passes that turn a graph as written into a graph as run. Each takes a Graph with the values it must keep and
// gives a new pair; none changes what is computed, save rounding where a lower precision was asked for.
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
/// Gives every value the element type its node wants on this backend and puts casts (reorders that change the type)
/// between. The one pass that changes results: by what the narrower type rounds away.
Work assign_precision(const Work& work, const backend::Backend& backend);
/// Gives every value the layout its node wants on this backend and puts reorders between; a cast on the way is done by
/// the same reorder.
Work assign_layouts(const Work& work, const backend::Backend& backend);
/// Makes each gradient the plain output of a node of its own, so that it can be written straight into the gradient
/// buffer.
Work isolate_gradients(const Work& work);

/// All of the above in order.
Work optimize(Work work, const backend::Backend& backend);

}  // namespace lockstep::program
