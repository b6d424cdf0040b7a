// The findings of an experiment in words, for a terminal, and as JSON. Free functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lab/results.h"
#include "terminal/terminal.h"

namespace lockstep::tools {

/// A line for each with its verdict, then its sentences; empty where the experiment states none.
std::string findings_text(const terminal::Terminal& terminal, const lab::Results& results, size_t width);
nlohmann::ordered_json findings_json(const lab::Results& results);

}  // namespace lockstep::tools
