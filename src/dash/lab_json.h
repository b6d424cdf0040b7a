// The lab's experiments as the page takes them: JSON. A lab that is not there, damaged or of a newer version is a
// notice in the answer. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dash/run_store.h"

namespace lockstep::dash {

std::string experiments_json(const std::string& lab_dir, const RunStore& store);

/// With its runs; nothing where there is no such experiment.
std::optional<std::string> experiment_json(const std::string& lab_dir, const RunStore& store, int64_t id);

/// Changes when the lab's database or one of its reports does.
uint64_t lab_stamp(const std::string& lab_dir);

/// The report of an experiment's folder, by the folder's name. Nothing where there is none, or it leads elsewhere.
std::optional<std::string> read_report(const RunStore& store, const std::string& folder);

}  // namespace lockstep::dash
