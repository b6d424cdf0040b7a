#include "launch/launch_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

namespace lockstep::launch {
namespace {

using settings::SettingDef;

constexpr std::array<std::string_view, 7> kLaunchSettings{"workers", "ps",     "layout",  "cpu-quota",
                                                          "emulate", "faults", "restarts"};

/// True for settings that the launcher sets for each role, or that mean nothing to a role.
bool is_launcher_only(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{"model",  "run-dir", "runs-dir", "name",    "resume",     "quiet",
                                                    "report", "cluster", "task",     "threads", "wait-policy"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// Returns nothing for a run that no launcher started.
std::optional<settings::Configuration> read_launch_yaml(const std::string& run_dir) {
  const std::string path = run_dir + "/launch.yaml";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  settings::Configuration kept;
  kept.load_yaml(path);
  return kept;
}

}  // namespace

bool is_launch_setting(std::string_view name) {
  return std::find(kLaunchSettings.begin(), kLaunchSettings.end(), name) != kLaunchSettings.end();
}

std::string launch_yaml(const settings::Settings& settings) {
  std::string yaml;
  for (const std::string_view name : kLaunchSettings) {
    const settings::SettingDef& def = *settings::find_setting(name);
    const std::string value = settings::value_text(settings, def);
    const bool text = name == "layout" || name == "emulate" || name == "faults";
    yaml += fmt::format("{}: {}\n", settings::yaml_key(def), text ? "\"" + value + "\"" : value);
  }
  return yaml;
}

bool same_workers(const settings::Settings& settings, const std::string& run_dir) {
  const std::optional<settings::Configuration> kept = read_launch_yaml(run_dir);
  if (!kept) return false;
  const auto same = [&](const char* name) { return kept->given_text(name) == settings::value_text(settings, name); };
  return same("workers") && same("layout");
}

void apply_launch_yaml(settings::Configuration& configuration, const std::string& run_dir) {
  const std::optional<settings::Configuration> kept = read_launch_yaml(run_dir);
  if (!kept) return;
  for (const std::string_view name : kLaunchSettings) {
    const std::string value = kept->given_text(name);
    if (!value.empty() && !configuration.given(name) && name != "faults") configuration.set(name, value);
  }
}

std::vector<std::string> role_words(const settings::Configuration& configuration) {
  std::vector<std::string> words{"train"};
  if (configuration.given("model")) words.push_back(configuration.given_text("model"));
  for (const SettingDef& def : settings::settings_table()) {
    if (is_launcher_only(def.name) || launch::is_launch_setting(def.name) || !configuration.given(def.name)) continue;
    // A config.yaml says `stop_loss: null`; as a flag without a value it would take the next word.
    const std::string value = configuration.given_text(def.name);
    if (!value.empty()) words.push_back(fmt::format("--{}={}", def.name, value));
  }
  return words;
}

}  // namespace lockstep::launch
