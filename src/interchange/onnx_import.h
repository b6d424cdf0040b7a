// Models from ONNX files of other programs: the graph up to the scores, with its float32 initializers as the
// parameters' initial values. docs/onnx.md lists the operators that can be imported. Free functions without state; any
// thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Protocol buffers hold at most 2 GB.
constexpr uint64_t kLargestOnnx = std::numeric_limits<int32_t>::max();

/// Reads a model and builds it once, so that errors appear now. Throws a one-line DataError that names the file, and
/// the node or tensor. The model is named after `file`. The result owns all that it needs.
nn::ModelDef parse_onnx_model(const std::string& bytes, const std::string& file);

/// Returns the metadata of a file that Lockstep exported: its data set, scaling of pixels, and classes (docs/onnx.md).
/// Empty for files of other programs. Throws as parse_onnx_model does.
std::map<std::string, std::string> export_facts(const std::string& bytes, const std::string& file);

}  // namespace lockstep::interchange
