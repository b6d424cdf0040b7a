// Conversion of a graph for TensorBoard's Graphs tab.
#pragma once

#include "observe/tensorboard/summary_writer.h"
#include "tensorboard.pb.h"

namespace lockstep::observe {

/// Converts every node with its inputs, scopes in its name, its device, and the shapes and types of its outputs. Names
/// are those of the graph, with characters other than letters, digits and "_.-/" replaced; nodes of the backward pass
/// are under gradients/.
tensorboard::GraphDef graph_def(const Graph& graph, const Devices& devices);

}  // namespace lockstep::observe
