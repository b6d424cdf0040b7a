// The runs that `show`, `compare` and `why` work on.
#pragma once

#include <string>
#include <string_view>

#include "records/run_record.h"
#include "terminal/terminal.h"

namespace lockstep::tools {

/// Returns a run by its folder, or by its name under `runs_dir`; without a name the newest one there.
records::RunRecord choose_run(const std::string& run, const std::string& runs_dir);

/// Returns "lr on mnist, 2 workers and 1 server (ps, sync), batch 100 each".
std::string what_run(const records::RunRecord& run);

/// Breaks the text into lines of at most `width` columns, limited to 60 to 120; words may be wider.
std::string wrapped_text(const std::string& text, size_t width, std::string_view indent = "");

/// Returns the run's name and description.
std::string title_line(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns the title line, the times of the run, and how it ended.
std::string run_headline(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns one line for each problem in reading the run; empty if there was none.
std::string warning_lines(const terminal::Terminal& terminal, const records::RunRecord& run);

}  // namespace lockstep::tools
