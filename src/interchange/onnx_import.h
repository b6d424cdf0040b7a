// Models from ONNX files that others wrote: the graph up to the scores, with its float32 initializers as the
// parameters' first values. docs/onnx.md says what can be imported. Free functions that keep nothing; any thread.
#pragma once

#include <string>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Reads a file; IoError where it cannot be read.
nn::ModelDef load_onnx_model(const std::string& path);

/// Reads a model and builds it once, so that what is wrong with it is told now: DataError of one line that names the
/// file, and the node or tensor. The result owns all that it needs.
nn::ModelDef parse_onnx_model(const std::string& bytes, const std::string& file);

}  // namespace lockstep::interchange
