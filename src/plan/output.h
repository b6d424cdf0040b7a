// A plan as JSON, as an experiment file that checks it, as a trace of a predicted step, and as a page. Free functions;
// any thread.
#pragma once

#include <string>

#include "plan/plan.h"

namespace lockstep::plan {

std::string to_json(const Plan& plan);

/// Returns the experiment that trains the plan's choices on emulated nodes (docs/experiments.md). Those that need more
/// than `cores` are only named.
std::string experiment_yaml(const Plan& plan, double cores);

/// Returns a trace of some steps of a row, in the format of Perfetto and chrome://tracing.
std::string trace_json(const Row& row);

/// Returns one self-contained page with the table and charts.
std::string html(const Plan& plan);

/// Returns "1 Gbit/s"; "unlimited" for an unknown rate.
std::string rate_text(double bytes_per_second);

}  // namespace lockstep::plan
