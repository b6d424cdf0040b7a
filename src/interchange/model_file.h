// Models as files, by the ending of their name. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Whether a model's name is that of a file: it ends in .yaml, .yml or .onnx.
bool is_model_file(std::string_view name);

/// Reads the file. Throws IoError where it cannot be read, and for what is wrong in it as its reader does. A model
/// without a name of its own is called as its file, or as `original` where this file is a copy of that.
nn::ModelDef load_model(const std::string& path, const std::string& original = "");

}  // namespace lockstep::interchange
