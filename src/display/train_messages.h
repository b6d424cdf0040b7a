// The messages of `lockstep train` before and after training.
#pragma once

#include "lockstep/train_events.h"
#include "settings/settings.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Prints what will be trained, and how.
void print_opening(const terminal::Terminal& terminal, const settings::Settings& settings,
                   const train::StartEvent& start);

/// Prints the result, the run's folder, and the next commands to try with `program`; `details` stand in between.
void print_closing(const terminal::Terminal& terminal, const settings::Settings& settings,
                   const train::Outcome& outcome, const std::string& program, const std::string& details = "");

/// Prints the result as one line, for --quiet.
void print_result_line(const settings::Settings& settings, const train::Outcome& outcome);

}  // namespace lockstep::display
