// The charts of runs as JSON for the page. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "dash/run_store.h"

namespace lockstep::dash {

/// Charts one run: its curves over "step", "epoch" or "seconds" (anything else means steps), the time of its phases,
/// and what its roles used. Leaves out charts without data.
std::string run_charts_json(const records::RunRecord& run, const std::string& over);

/// Charts the curves of several runs, overlaid.
std::string compare_charts_json(const std::vector<RunPtr>& runs, const std::string& over);

}  // namespace lockstep::dash
