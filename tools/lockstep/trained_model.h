// The checkpoint that eval and predict use unless told otherwise.
#pragma once

#include "train/inference.h"

namespace lockstep::tools {

/// The named checkpoint; without a name the best of the run, or the newest where none was evaluated.
train::TrainedModel load_trained(train::ModelSource source);

}  // namespace lockstep::tools
