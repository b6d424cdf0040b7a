// One self-contained HTML page of an experiment: findings in words, tables, plots, the environment, how to run it
// again. Nothing is fetched from anywhere. Free functions; any thread.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::report {

/// The page. Runs that failed or are missing are said to be so; what cannot be drawn says why.
std::string html(const lab::Results& results);

}  // namespace lockstep::report
