// The runs that `show`, `compare` and `why` are asked about.
#pragma once

#include <string>
#include <string_view>

#include "records/run_record.h"
#include "terminal/terminal.h"

namespace lockstep::tools {

/// A run by its folder, or by its name under `runs_dir`; the newest there where no name is given.
records::RunRecord choose_run(const std::string& run, const std::string& runs_dir);

/// "lr on mnist, 2 workers and 1 server (ps, sync), batch 100 each".
std::string what_run(const records::RunRecord& run);

/// The text in lines of at most `width` columns, or 120, or at least 60; words may be wider.
std::string wrapped_text(const std::string& text, size_t width, std::string_view indent = "");

/// Its name and what it is.
std::string title_line(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// The same, when it was, and how it ended.
std::string run_headline(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// What could not be read, a line each; nothing where all could.
std::string warning_lines(const terminal::Terminal& terminal, const records::RunRecord& run);

}  // namespace lockstep::tools
