// The checkpoint that eval and predict use unless told otherwise.
#pragma once

#include <span>

#include "inspect/inference.h"

namespace lockstep::tools {

/// The named checkpoint; without a name the best of the run, or the newest where none was evaluated.
/// `models` are known besides the zoo's.
inspect::TrainedModel load_trained(inspect::ModelSource source, std::span<const nn::ModelDef> models);

}  // namespace lockstep::tools
