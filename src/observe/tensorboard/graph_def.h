// A graph as TensorBoard's Graphs tab reads it.
#pragma once

#include "observe/tensorboard/summary_writer.h"
#include "tensorboard.pb.h"

namespace lockstep::observe {

/// Every node with its inputs, scopes in its name, its device, and the shapes and types of its outputs. Names are those
/// of the graph with other characters than letters, digits and "_.-/" replaced; nodes of the backward pass lie under
/// gradients/.
tensorboard::GraphDef graph_def(const Graph& graph, const Devices& devices);

}  // namespace lockstep::observe
