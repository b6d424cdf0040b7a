// Results of an experiment in words and tables. Free functions.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::tools {

/// "accuracy 91.2 %, loss 0.31".
std::string result_text(const lab::Measured& values);
/// A measured value with its unit, or "" where it is not known.
std::string field_text(const lab::Measured& values, std::string_view field);
void print_results(const lab::Results& results);

/// One row per run, or per role of each: what was set, tags, what was measured.
std::string results_csv(const lab::Results& results, bool per_role);
std::string results_json(const lab::Results& results, bool per_role);
/// One row per measured value: run, role, field, value.
std::string long_csv(const lab::Results& results);

}  // namespace lockstep::tools
