// What a report shows where the experiment does not say. Free functions; any thread.
#pragma once

#include "lab/results.h"

namespace lockstep::report {

/// What the experiment asks for; without tables and plots those that every experiment can have: for each group a table
/// of what varies, curves, where the time goes, what the nodes use.
lab::ReportSpec spec_of(const lab::Results& results);

}  // namespace lockstep::report
