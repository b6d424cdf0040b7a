// The charts of runs as the page takes them: JSON. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "dash/run_store.h"

namespace lockstep::dash {

/// Of one run: its curves over "step", "epoch" or "seconds" (what else is asked for is steps), where the time went, and
/// what its roles used. Charts without data are left out.
std::string run_charts_json(const records::RunRecord& run, const std::string& over);

/// The curves of several, overlaid.
std::string compare_charts_json(const std::vector<RunPtr>& runs, const std::string& over);

}  // namespace lockstep::dash
