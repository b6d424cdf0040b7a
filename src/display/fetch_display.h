// Shows a download: a bar on a terminal, a line per file elsewhere.
#pragma once

#include "data/fetch.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Returns a callback for data::fetch and train::Session; `quiet` prints nothing.
data::FetchCallback fetch_display(const terminal::Terminal& terminal, bool quiet = false);

}  // namespace lockstep::display
