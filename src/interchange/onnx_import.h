// Models from ONNX files that others wrote: the graph up to the scores, with its float32 initializers as the
// parameters' first values. docs/onnx.md says what can be imported. Free functions that keep nothing; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Protocol buffers end at 2 GB.
constexpr uint64_t kLargestOnnx = std::numeric_limits<int32_t>::max();

/// Reads a model and builds it once, so that what is wrong with it is told now: DataError of one line that names the
/// file, and the node or tensor. `file` names the model too. The result owns all that it needs.
nn::ModelDef parse_onnx_model(const std::string& bytes, const std::string& file);

}  // namespace lockstep::interchange
