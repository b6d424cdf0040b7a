// Prints the end of a cluster's run: its result, and a line per worker. Free functions.
#pragma once

#include <functional>
#include <string>

#include "settings/settings.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Returns how often a role was restarted: "worker:1" -> 2.
using Restarts = std::function<int(const std::string& role)>;

/// Prints the result in the chief's summary.json; one line if the settings ask for quiet. `already_finished`: that of
/// an earlier training, after which nothing was left to do.
void print_cluster_closing(const terminal::Terminal& terminal, const settings::Settings& settings,
                           const std::string& run_dir, const std::string& program, const Restarts& restarts,
                           bool already_finished = false);

}  // namespace lockstep::display
