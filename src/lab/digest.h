// What tells one training from another. Free functions; any thread.
#pragma once

#include <string>

#include "lab/experiment.h"

namespace lockstep::lab {

/// The same for the same training, whatever it is called: of its settings, its cluster, the content of its model's
/// file, and the size and time of its data's.
std::string digest_of(const RunPlan& plan);

}  // namespace lockstep::lab
