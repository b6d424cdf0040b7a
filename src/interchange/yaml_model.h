// Models written in YAML: layers with defaults and shape inference. docs/models.md describes the format.
#pragma once

#include <string>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Reads a model and builds it once with its own defaults, so that errors appear now. Throws a one-line UsageError with
/// file, line and column, and for shapes the shapes seen. `file` stands for the file in errors. A model without a name
/// in the text is named after `named_after` (or after `file`). The result owns all that it needs.
nn::ModelDef parse_yaml_model(const std::string& text, const std::string& file, const std::string& named_after = "");

}  // namespace lockstep::interchange
