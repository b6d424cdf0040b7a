// Models from files; the ending of the name decides the format. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Returns true if the model's name is that of a file: it ends in .yaml, .yml or .onnx.
bool is_model_file(std::string_view name);

/// Reads the file. Throws IoError if it cannot be read, and the reader's errors for its content. A model without a name
/// of its own is named after its file, or after `original` if this file is a copy of that one.
nn::ModelDef load_model(const std::string& path, const std::string& original = "");

}  // namespace lockstep::interchange
