#include "settings/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/suggest.h"
#include "data/catalog.h"
#include "data/order.h"
#include "lockstep/error.h"
#include "settings/metrics_address.h"

namespace lockstep::settings {
namespace {

const SettingDef& known_setting(std::string_view name) {
  const SettingDef* def = find_setting(name);
  if (def == nullptr) throw UsageError(fmt::format("unknown setting '{}'{}", name, setting_hint(name)));
  return *def;
}

/// Quotes a text unless YAML would read it as itself.
std::string quoted(const std::string& text) {
  const auto safe = [](unsigned char c) { return std::isalnum(c) != 0 || (c != '\0' && std::strchr("_./", c)); };
  const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                     std::all_of(text.begin(), text.end(), [&](char c) { return safe(static_cast<unsigned char>(c)); });
  if (plain && text != "null") return text;
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string yaml_value(const Settings& settings, const SettingDef& def) {
  const std::string text = value_text(settings, def);
  if (std::holds_alternative<std::optional<double> Settings::*>(def.member)) return text.empty() ? "null" : text;
  const bool is_text =
      std::holds_alternative<std::string Settings::*>(def.member) || std::holds_alternative<EnumMember>(def.member);
  if (std::holds_alternative<Options Settings::*>(def.member)) {
    std::string map;
    for (const auto& [key, value] : settings.*std::get<Options Settings::*>(def.member)) {
      map += fmt::format("{}{}: {}", map.empty() ? "" : ", ", quoted(key), quoted(value));
    }
    return "{" + map + "}";
  }
  return is_text ? quoted(text) : text;
}

}  // namespace

void Configuration::set(std::string_view name, std::string_view text, std::string where) {
  const SettingDef& def = known_setting(name);
  if (where.empty()) where = "--" + std::string(def.name);
  Settings scratch;
  assign(scratch, def, text, where);
  Given& given = flags_[std::string(def.name)];
  const bool adds_up = std::holds_alternative<Options Settings::*>(def.member) && !given.text.empty();
  if (!adds_up && !given.where.empty() && given.where != where && given.text != text) {
    const bool by_name = given.where == fmt::format("--{}", def.name);
    throw UsageError(
        fmt::format("{}: contradicts {}{}; give one of them", where, given.where, by_name ? " " + given.text : ""));
  }
  given = {adds_up ? given.text + "," + std::string(text) : std::string(text), where};
}

const Configuration::Given* Configuration::find(std::string_view name) const {
  for (const Layer* layer : {&flags_, &file_}) {
    if (const auto found = layer->find(name); found != layer->end()) return &found->second;
  }
  return nullptr;
}

bool Configuration::given(std::string_view name) const { return find(known_setting(name).name) != nullptr; }

std::string Configuration::given_text(std::string_view name) const {
  const Given* given = find(known_setting(name).name);
  return given == nullptr ? "" : given->text;
}

void Configuration::apply(Settings& settings, const Layer& layer) {
  for (const auto& [name, given] : layer) assign(settings, *find_setting(name), given.text, given.where);
}

void Configuration::fill_model_defaults(Settings& settings) const {
  const auto name_in = [](const Layer& layer) {
    const auto found = layer.find("model");
    return found == layer.end() ? std::string() : found->second.text;
  };
  std::string name = name_in(flags_);
  if (name.empty()) name = name_in(file_);
  if (name.empty()) name = name_in(run_);
  if (name.empty()) throw UsageError("no model given; `lockstep models` lists them");
  Settings options;  // options of all layers, because defaults may depend on them
  for (const Layer* layer : {&run_, &file_, &flags_}) {
    if (const auto found = layer->find("options"); found != layer->end()) {
      assign(options, *find_setting("options"), found->second.text, found->second.where);
    }
  }
  const nn::ModelDef& def = model(name);
  const nn::TrainingDefaults defaults = nn::defaults_for(def, nn::resolve_options(def, options.options));
  settings.model = name;
  settings.dataset = defaults.dataset;
  assign(settings, *find_setting("pixels"), defaults.pixels, fmt::format("model '{}': pixels", name));
  assign(settings, *find_setting("optimizer"), defaults.optimizer, fmt::format("model '{}': optimizer", name));
  // Converts through text, because the user wrote 0.1 and not the float next to it.
  settings.lr = std::stod(fmt::format("{}", defaults.learning_rate));
  settings.batch = defaults.batch;
  settings.epochs = given("steps") || given("seconds") ? 0 : defaults.epochs;
}

Settings Configuration::resolve() const {
  Settings settings;
  fill_model_defaults(settings);
  apply(settings, run_);
  const Settings before = settings;
  apply(settings, file_);
  apply(settings, flags_);
  if (!run_.empty()) check_resume(before, settings);
  settings.options = nn::resolve_options(model(settings.model), settings.options);
  if (settings.max_staleness >= 0 && settings.mode == Mode::sync) {
    if (find("mode") != nullptr) throw UsageError(where("max-staleness") + ": only for async; mode is sync");
    settings.mode = Mode::async;
  }
  check_together(settings);
  return settings;
}

std::string Configuration::where(std::string_view name) const {
  if (const Given* given = find(name)) return given->where;
  const auto found = run_.find(name);
  return found == run_.end() ? std::string(name) : found->second.where;
}

void Configuration::check_together(const Settings& s) const {
  const auto reject = [this](std::string_view name, const std::string& message) {
    throw UsageError(where(name) + ": " + message);
  };
  if (s.nesterov && s.optimizer != optim::Method::momentum) {
    reject("nesterov", "optimizer is '" + value_text(s, "optimizer") + "'; it needs optimizer momentum");
  }
  using Kind = optim::Schedule::Kind;
  if ((s.schedule == Kind::step || s.schedule == Kind::exponential) && s.decay_steps == 0) {
    reject("schedule", "'" + value_text(s, "schedule") + "' needs decay-steps, the steps per decay");
  }
  if (decays_to_the_end(s) && s.decay_steps == 0 && s.epochs == 0 && s.steps == 0 && s.repeat == 0) {
    reject("schedule",
           "'" + value_text(s, "schedule") + "' needs decay-steps where no epochs, steps or repeat end the training");
  }
  if (s.eval_split == EvalSplit::validation && s.holdout == 0 && !data::may_have_validation(s.dataset)) {
    reject("eval-split", "'validation' is empty; holdout N keeps N training examples for it");
  }
  const bool ends = s.epochs > 0 || s.steps > 0 || s.seconds > 0 || s.repeat > 0 || s.stop_loss || s.stop_accuracy;
  if (!ends) {
    throw UsageError("nothing ends the training: set epochs, steps, seconds, repeat, stop-loss or stop-accuracy");
  }
  if (!s.checkpoint.empty() && s.resume.empty()) reject("checkpoint", "is only used with resume");
  if (s.monitor_every > 0 && s.monitor_every < 0.001) {
    reject("monitor-every", fmt::format("{} seconds are too few; 0 (never) or from 0.001 to 3600", s.monitor_every));
  }
  (void)metrics_address(s, 0);
  try {
    data::Shuffle::parse(s.shuffle);
  } catch (const UsageError& error) {
    reject("shuffle", error.what());
  }
}

void Configuration::check_resume(const Settings& before, const Settings& now) const {
  for (const SettingDef& def : settings_table()) {
    if (def.keep != Keep::fixed || find(def.name) == nullptr) continue;
    const std::string was = value_text(before, def);
    const std::string is = value_text(now, def);
    if (was == is) continue;
    throw UsageError(fmt::format("{}: '{}' cannot be used to resume this run, which has '{}'; leave it out",
                                 find(def.name)->where, is, was));
  }
}

std::string to_yaml(const Settings& settings) {
  std::string yaml;
  std::string_view group;
  for (const SettingDef& def : settings_table()) {
    if (def.keep == Keep::call_only) continue;
    if (def.group != group) yaml += fmt::format("{}# {}\n", yaml.empty() ? "" : "\n", def.group);
    group = def.group;
    yaml += yaml_key(def) + ": " + yaml_value(settings, def) + "\n";
  }
  return yaml;
}

}  // namespace lockstep::settings
