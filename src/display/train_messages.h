// What `lockstep train` says before and after training.
#pragma once

#include "lockstep/train_events.h"
#include "settings/settings.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// What is about to be trained, and how.
void print_opening(const terminal::Terminal& terminal, const settings::Settings& settings,
                   const train::StartEvent& start);

/// How it went, where it is kept, and what to do next with `program`; `details` stand between the two.
void print_closing(const terminal::Terminal& terminal, const settings::Settings& settings,
                   const train::Outcome& outcome, const std::string& program, const std::string& details = "");

/// The same as one line, for --quiet.
void print_result_line(const settings::Settings& settings, const train::Outcome& outcome);

}  // namespace lockstep::display
