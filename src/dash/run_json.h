// Runs as the page takes them: JSON. What is not known is null. Free functions; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dash/run_store.h"
#include "records/run_record.h"

namespace lockstep::dash {

/// In the list of runs.
std::string row_json(const RunPlace& place, const records::RunRecord& run, double changed);
/// Likewise, of a run that cannot be read.
std::string damaged_row_json(const RunPlace& place, const std::string& reason, double changed);

/// All that is said of a run in words and figures. `now` is in seconds since 1970.
std::string run_json(const std::string& id, const records::RunRecord& run, double now);

/// What differs between runs: settings and results.
std::string compare_json(const std::vector<std::pair<std::string, RunPtr>>& runs);

}  // namespace lockstep::dash
