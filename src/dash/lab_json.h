// The lab's experiments as JSON for the page. If the lab is missing, damaged or of a newer version, the answer holds a
// notice. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dash/run_store.h"

namespace lockstep::dash {

std::string experiments_json(const std::string& lab_dir, const RunStore& store);

/// Describes an experiment with its runs; nothing if there is no such experiment.
std::optional<std::string> experiment_json(const std::string& lab_dir, const RunStore& store, int64_t id);

/// Returns a number that changes when the lab's database or one of its reports does.
uint64_t lab_stamp(const std::string& lab_dir);

/// Returns the report of an experiment, by its folder's name; nothing if there is none, or the path leads out of the
/// lab.
std::optional<std::string> read_report(const RunStore& store, const std::string& folder);

}  // namespace lockstep::dash
