// Models written in YAML: layers with defaults and shape inference. docs/models.md describes the format.
#pragma once

#include <string>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Reads a model and builds it once with its own defaults, so that what is wrong is told now: UsageError of one line
/// with file, line and column, and for shapes those seen. `file` stands for the file in errors; where the text does not
/// name the model, `named_after` (else `file`) does. The result owns all that it needs.
nn::ModelDef parse_yaml_model(const std::string& text, const std::string& file, const std::string& named_after = "");

}  // namespace lockstep::interchange
