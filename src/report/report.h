// Writes an experiment's report as one self-contained HTML page: findings in words, tables, plots, the environment, how
// to run it again. The page fetches nothing. Free functions; any thread.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::report {

/// Returns the page. It names runs that failed or are missing, and explains what could not be drawn.
std::string html(const lab::Results& results);

}  // namespace lockstep::report
