// Identifies a training by its content. Free functions; any thread.
#pragma once

#include <string>

#include "lab/experiment.h"

namespace lockstep::lab {

/// Returns the same digest for the same training, whatever its name: of its settings, its cluster, the content of its
/// model file, and the size and time of its data files.
std::string digest_of(const RunPlan& plan);

}  // namespace lockstep::lab
