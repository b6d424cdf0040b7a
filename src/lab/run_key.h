// Names runs: finds what varies within a group, and makes from it a key that is readable and usable as a folder name.
// Internal to the room; any thread.
#pragma once

#include <vector>

#include "lab/expansion.h"

namespace lockstep::lab {

/// Fills in `varied` and `key` (without the repeat) of all variations of one group.
void name_runs(std::vector<Variation>& variations);

}  // namespace lockstep::lab
