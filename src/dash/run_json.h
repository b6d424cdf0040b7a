// Runs as JSON for the page. Unknown values are null. Free functions; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dash/run_store.h"
#include "records/run_record.h"

namespace lockstep::dash {

/// Describes a run as a row of the list.
std::string row_json(const RunPlace& place, const records::RunRecord& run, double changed);
/// Describes a run that cannot be read as a row of the list.
std::string damaged_row_json(const RunPlace& place, const std::string& reason, double changed);

/// Describes a run in words and figures. `now` is in seconds since 1970.
std::string run_json(const std::string& id, const records::RunRecord& run, double now);

/// Describes the differences between runs: settings and results.
std::string compare_json(const std::vector<std::pair<std::string, RunPtr>>& runs);

}  // namespace lockstep::dash
