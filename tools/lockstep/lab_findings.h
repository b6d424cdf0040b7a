// Formats the findings of an experiment for a terminal and as JSON. Free functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lab/results.h"
#include "terminal/terminal.h"

namespace lockstep::tools {

/// Returns a line with the verdict for each finding, then its sentences; empty if the experiment states none.
std::string findings_text(const terminal::Terminal& terminal, const lab::Results& results, size_t width);
nlohmann::ordered_json findings_json(const lab::Results& results);

}  // namespace lockstep::tools
