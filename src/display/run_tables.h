// The tables of a run: its roles, where their time went, what they and their nodes used.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "records/run_record.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Accuracy, loss, steps, speed: a line each.
std::string result_lines(const terminal::Terminal& terminal, const records::RunRecord& run);

/// A line per role; columns that no role has a value for are left out.
std::string role_table(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// A bar per role and a line per phase; empty where none was recorded.
std::string phase_text(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Peaks of the nodes; empty where nothing was recorded.
std::string peak_table(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// The name of a column of phases.csv as people read it.
std::string phase_name(std::string_view column);

}  // namespace lockstep::display
