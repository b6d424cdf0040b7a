// Programs that are not ours in an experiment: what the runner passes to `lockstep guest`, and what comes back.
// Internal to the room; any thread.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/fields.h"

namespace lockstep::lab {

/// Returns a setting's name as files write it: with underscores.
std::string yaml_name(std::string name);
/// Returns the values of names in braces: settings, tags, and the folder of data sets unless it is empty.
Values guest_values(const RunPlan& plan, const std::string& data);
/// Returns the program's arguments, starting with the command.
std::vector<std::string> guest_words(const RunPlan& plan, const std::string& run_dir, const std::string& data);
/// Adds the fields that the program reported, from figures.json. Throws DataError, IoError.
void add_guest_figures(const std::string& run_dir, Measured& values);

}  // namespace lockstep::lab
