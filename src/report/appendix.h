// The parts that every report has: header, list of runs, environment, how to run it again, what the figures are. Free
// functions; any thread.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::report {

std::string header_html(const lab::Results& results);
std::string runs_html(const lab::Results& results);
std::string environment_html(const lab::Results& results);
std::string again_html(const lab::Results& results);
/// Describes the fields that tables, plots and findings name.
std::string method_html(const lab::ReportSpec& spec);

}  // namespace lockstep::report
