#include "train_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace lockstep::tools {
namespace {

using settings::SettingDef;

bool is_flag(const SettingDef& def) { return std::holds_alternative<bool settings::Settings::*>(def.member); }

std::string description(const SettingDef& def) {
  std::string text(def.help);
  if (!def.choices.empty()) text += fmt::format(" ({})", fmt::join(def.choices, ", "));
  const std::string value = settings::default_text(def);
  if (!value.empty() && !is_flag(def)) text += fmt::format(" [{}]", value);
  return text;
}

void sort_into_help(const Option& option, const SettingDef& def) {
  if (def.shown == settings::In::help_all) (void)option.only_in_full_help();
}

void add_setting(const Command& app, const SettingDef& def, const std::shared_ptr<TrainArguments>& arguments) {
  const std::string name(def.name);
  const auto take = [arguments, name](const std::string& text) { arguments->settings.push_back({name, text, ""}); };
  const std::string group(def.group);
  if (is_flag(def)) {
    const auto take_flag = [take](bool on) { take(on ? "true" : "false"); };
    sort_into_help(app.add_flag("--" + name, take_flag, description(def)).group(group), def);
  } else {
    const auto take_all = [take](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) take(text);
    };
    const Option option = app.add_option("--" + name, take_all, description(def));
    sort_into_help(option.type_name(std::string(def.value)).group(group), def);
  }
}

/// --sync and --async are short for --mode; --help shows them in its place.
void add_modes(const Command& app, const std::shared_ptr<TrainArguments>& arguments) {
  for (const std::string mode : {"sync", "async"}) {
    const auto take = [arguments, mode](bool on) {
      if (on) arguments->settings.push_back({"mode", mode, "--" + mode});
    };
    app.add_flag("--" + mode, take, "the same as --mode " + mode).group("Cluster");
  }
}

}  // namespace

void add_train_arguments(const Command& app, const std::shared_ptr<TrainArguments>& arguments) {
  app.add_full_help();
  app.add_option("MODEL", arguments->model,
                 "What to train: `lockstep models` lists them; or a model file; none with --resume");
  app.add_option("--config", arguments->config, "Settings from a YAML file, one `key: value` per line; flags win")
      .type_name("FILE")
      .take_last();
  for (const SettingDef& def : settings::settings_table()) {
    if (def.name != "model") add_setting(app, def, arguments);
    if (def.name == "mode") add_modes(app, arguments);
  }
}

settings::Configuration make_configuration(const TrainArguments& arguments, std::span<const nn::ModelDef> models) {
  settings::Configuration configuration(models);
  if (!arguments.config.empty()) configuration.load_yaml(arguments.config);
  if (!arguments.model.empty()) configuration.set("model", arguments.model);
  for (const auto& [name, text, flag] : arguments.settings) configuration.set(name, text, flag);
  return configuration;
}

}  // namespace lockstep::tools
