// Facts about a model in tables, for `lockstep models` and docs/models.md.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::tools {

/// Counts with the options' defaults and the model's own image size.
size_t parameter_count(const nn::ModelDef& model);
/// Returns "adam 0.001, batch 64, 20 epochs".
std::string training_text(const nn::ModelDef& model);

}  // namespace lockstep::tools
