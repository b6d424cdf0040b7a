// Contents of a report if the experiment does not specify them. Free functions; any thread.
#pragma once

#include "lab/results.h"

namespace lockstep::report {

/// Returns the experiment's report. Without tables and plots in it, adds default ones: for each group a table of its
/// variations, curves, the time of phases, and the usage of nodes.
lab::ReportSpec spec_of(const lab::Results& results);

}  // namespace lockstep::report
