// Loads the checkpoint that eval and predict use.
#pragma once

#include <span>

#include "inspect/inference.h"

namespace lockstep::tools {

/// Returns the named checkpoint; without a name the run's best, or the newest if none was evaluated. `models` are known
/// besides the zoo's.
inspect::TrainedModel load_trained(inspect::ModelSource source, std::span<const nn::ModelDef> models);

}  // namespace lockstep::tools
