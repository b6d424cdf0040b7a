// The runs that `show`, `compare` and `why` are asked about.
#pragma once

#include <string>

#include "records/run_record.h"
#include "terminal.h"

namespace lockstep::tools {

/// A run by its folder, or by its name under `runs_dir`; the newest there where no name is given.
records::RunRecord choose_run(const std::string& run, const std::string& runs_dir);

/// "lr on mnist, 2 workers and 1 server (ps, sync), batch 100 each".
std::string what_run(const records::RunRecord& run);

/// Its name, its settings in a line, when it was and how it ended.
std::string run_headline(const Terminal& terminal, const records::RunRecord& run);

/// What could not be read, a line each; nothing where all could.
std::string warning_lines(const Terminal& terminal, const records::RunRecord& run);

}  // namespace lockstep::tools
