// Settings that only a launcher needs, and the arguments of a role. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settings/configuration.h"

namespace lockstep::launch {

/// Returns the launcher's settings as YAML: the content of a run's launch.yaml.
std::string launch_yaml(const settings::Settings& settings);
/// True if only a launcher needs the setting.
bool is_launch_setting(std::string_view name);
/// Returns whether the run's launch.yaml names as many workers as the settings, in the same layout.
bool same_workers(const settings::Settings& settings, const std::string& run_dir);

/// On resuming: sets what the run's launch.yaml says and the user does not, if that file exists.
void apply_launch_yaml(settings::Configuration& configuration, const std::string& run_dir);
/// Returns the arguments of `train` for a role: the model and the settings from flags and file, without the launcher's
/// own and without those set for each role (run folder, role, threads, output).
std::vector<std::string> role_words(const settings::Configuration& configuration);

}  // namespace lockstep::launch
