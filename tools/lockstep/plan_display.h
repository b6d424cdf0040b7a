// A plan for the terminal.
#pragma once

#include <string>

#include "plan/plan.h"
#include "terminal/terminal.h"

namespace lockstep::tools {

/// Returns the table, the chart, the choices in words, and the notes.
std::string plan_text(const terminal::Terminal& terminal, const plan::Plan& plan, size_t width);

}  // namespace lockstep::tools
