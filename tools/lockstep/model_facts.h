// Facts about a model in tables, for `lockstep models` and docs/models.md.
#pragma once

#include <string>

#include "lockstep/nn.h"

namespace lockstep::tools {

/// Returns "adam 0.001, batch 64, 20 epochs".
std::string training_text(const nn::ModelDef& model);

}  // namespace lockstep::tools
