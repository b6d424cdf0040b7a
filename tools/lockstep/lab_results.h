// Formats results of an experiment as text and tables. Free functions.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::tools {

/// Returns "accuracy 91.2 %, loss 0.31".
std::string result_text(const lab::Measured& values);
/// Returns a measured value with its unit, or "" if it is unknown.
std::string field_text(const lab::Measured& values, std::string_view field);
void print_results(const lab::Results& results);

/// Returns one row per run, or per role of each run: settings, tags, measured values.
std::string results_csv(const lab::Results& results, bool per_role);
std::string results_json(const lab::Results& results, bool per_role);
/// Returns one row per measured value: run, role, field, value.
std::string long_csv(const lab::Results& results);

}  // namespace lockstep::tools
