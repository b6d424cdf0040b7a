// A table of what a monitored program and its machine used.
#pragma once

#include <string>

#include "observe/monitor/resource_monitor.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// Returns the table. `csv` is the file of the samples; empty: none was written.
std::string monitor_report(const observe::ResourceSummary& summary, const std::string& program, double seconds,
                           const std::string& csv, const terminal::Terminal& terminal);

}  // namespace lockstep::display
