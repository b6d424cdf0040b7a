// What a monitored program and its machine used, as a table for people.
#pragma once

#include <string>

#include "observe/monitor/resource_monitor.h"
#include "terminal/terminal.h"

namespace lockstep::display {

/// `csv`: where the samples are; empty: nowhere.
std::string monitor_report(const observe::ResourceSummary& summary, const std::string& program, double seconds,
                           const std::string& csv, const terminal::Terminal& terminal);

}  // namespace lockstep::display
