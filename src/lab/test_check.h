// Refuses tests of findings that no scale of a file can decide, because no run has what they ask for, or whose answer
// is known beforehand. Internal to the room; any thread.
#pragma once

#include <vector>

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// Throws UsageError at the place of the first test whose limit leaves only one answer. `scales`: the experiment at
/// each of its scales.
void check_limits(const Reader& reader, const std::vector<Experiment>& scales);
/// Throws UsageError at the place of the first test of what no run has.
void check_tests(const Reader& reader, const std::vector<Experiment>& scales);

}  // namespace lockstep::lab
