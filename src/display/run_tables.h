// Tables of a run: its roles, the time of their phases, and what they and their nodes used.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "records/run_record.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Returns accuracy, loss, steps and speed, a line each.
std::string result_lines(const terminal::Terminal& terminal, const records::RunRecord& run);

/// Returns a line per role, without columns in which no role has a value.
std::string role_table(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns a bar per role and a line per phase; empty if none was recorded.
std::string phase_text(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns the peaks of the nodes; empty if nothing was recorded.
std::string peak_table(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns a readable name for a column of phases.csv.
std::string phase_name(std::string_view column);

}  // namespace lockstep::display
