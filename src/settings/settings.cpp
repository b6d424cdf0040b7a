#include "settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::settings {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

bool limited(const SettingDef& def) { return def.least != def.most; }

bool within(const SettingDef& def, double value) {
  if (!limited(def)) return true;
  return value <= def.most && (def.above ? value > def.least : value >= def.least);
}

[[noreturn]] void reject(const SettingDef& def, std::string_view text, const std::string& where) {
  constexpr size_t kShown = 60;
  const std::string shown = text.size() > kShown ? std::string(text.substr(0, kShown)) + "..." : std::string(text);
  throw UsageError(fmt::format("{}: '{}' is not allowed; it takes {}", where, shown, allowed_text(def)));
}

template <class T>
T parse_number(const SettingDef& def, std::string_view text, const std::string& where) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!whole || !std::isfinite(static_cast<double>(value)) || !within(def, static_cast<double>(value))) {
    reject(def, text, where);
  }
  return value;
}

bool parse_bool(const SettingDef& def, std::string_view text, const std::string& where) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  reject(def, text, where);
}

/// Throws for a text that is neither a choice nor otherwise accepted.
[[noreturn]] void reject_choice(const SettingDef& def, std::string_view text, const std::string& where) {
  const std::string nearest = base::nearest(std::string(text), def.choices);
  if (nearest.empty()) reject(def, text, where);
  throw UsageError(fmt::format("{}: '{}' is not allowed (did you mean '{}'?); it takes {}", where, text, nearest,
                               allowed_text(def)));
}

size_t parse_choice(const SettingDef& def, std::string_view text, const std::string& where) {
  if (text.find('\0') != std::string_view::npos) reject(def, "\\0", where);
  const auto found = std::find(def.choices.begin(), def.choices.end(), text);
  if (found == def.choices.end()) reject_choice(def, text, where);
  return static_cast<size_t>(found - def.choices.begin());
}

std::string parse_text(const SettingDef& def, std::string_view text, const std::string& where) {
  std::string value(text);
  if (value.find('\0') != std::string::npos) reject(def, "\\0", where);
  if (def.choices.empty() || std::find(def.choices.begin(), def.choices.end(), value) != def.choices.end()) {
    return value;
  }
  if (def.also != nullptr && def.also(value)) return value;
  reject_choice(def, text, where);
}

/// Parses "a=1,b=2,3" as a: 1, b: 2,3. A part without '=' belongs to the value before it.
Options parse_options(const SettingDef& def, std::string_view text, const std::string& where) {
  Options options;
  std::string key;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == 0 || (equals == std::string_view::npos && key.empty())) reject(def, text, where);
    if (equals == std::string_view::npos) {
      options[key].append(",").append(part);
    } else {
      key = std::string(part.substr(0, equals));
      options[key] = std::string(part.substr(equals + 1));
    }
    begin = end + 1;
  }
  return options;
}

std::string options_text(const Options& options) {
  std::string text;
  for (const auto& [key, value] : options) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

std::string number_text(const SettingDef& def, bool whole) {
  const std::string kind = whole ? "a whole number" : "a number";
  if (!limited(def)) return kind;
  return fmt::format("{} {} {} to {}", kind, def.above ? "above" : "from", def.least, def.most);
}

}  // namespace

const SettingDef* find_setting(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  for (const SettingDef& def : settings_table()) {
    if (def.name == wanted) return &def;
  }
  return nullptr;
}

std::string setting_hint(std::string_view name) {
  std::vector<std::string> names;
  for (const SettingDef& def : settings_table()) names.emplace_back(def.name);
  std::string wanted(name.substr(0, 60));
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  const std::string nearest = base::nearest(wanted, names);
  return nearest.empty() ? "; `lockstep train --help` lists all" : fmt::format(" (did you mean '{}'?)", nearest);
}

std::string yaml_key(const SettingDef& def) {
  std::string key(def.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string value_text(const Settings& settings, const SettingDef& def) {
  return std::visit(Overloaded{
                        [&](bool Settings::*member) -> std::string { return settings.*member ? "true" : "false"; },
                        [&](std::string Settings::*member) -> std::string { return settings.*member; },
                        [&](Options Settings::*member) -> std::string { return options_text(settings.*member); },
                        [&](const EnumMember& member) -> std::string { return def.choices[member.get(settings)]; },
                        [&](std::optional<double> Settings::*member) -> std::string {
                          return settings.*member ? fmt::format("{}", *(settings.*member)) : "";
                        },
                        [&](auto member) -> std::string { return fmt::format("{}", settings.*member); },
                    },
                    def.member);
}

std::string value_text(const Settings& settings, std::string_view name) {
  return value_text(settings, *find_setting(name));
}

void assign(Settings& settings, const SettingDef& def, std::string_view text, const std::string& where) {
  std::visit(Overloaded{
                 [&](bool Settings::*member) { settings.*member = parse_bool(def, text, where); },
                 [&](int64_t Settings::*member) { settings.*member = parse_number<int64_t>(def, text, where); },
                 [&](uint64_t Settings::*member) { settings.*member = parse_number<uint64_t>(def, text, where); },
                 [&](double Settings::*member) { settings.*member = parse_number<double>(def, text, where); },
                 [&](std::optional<double> Settings::*member) {
                   settings.*member =
                       text.empty() ? std::nullopt : std::optional(parse_number<double>(def, text, where));
                 },
                 [&](std::string Settings::*member) { settings.*member = parse_text(def, text, where); },
                 [&](const EnumMember& member) { member.set(settings, parse_choice(def, text, where)); },
                 [&](Options Settings::*member) {
                   for (auto& [key, value] : parse_options(def, text, where)) (settings.*member)[key] = value;
                 },
             },
             def.member);
}

bool decays_to_the_end(const Settings& settings) {
  using Decay = optim::Schedule::Kind;
  const Decay schedule = settings.schedule;
  return schedule == Decay::cosine || schedule == Decay::linear || schedule == Decay::polynomial;
}

std::string allowed_text(const SettingDef& def) {
  const auto text = [&] {
    if (def.choices.empty()) return std::string("text");
    const std::string besides = def.also == nullptr ? "" : fmt::format(", or {}", def.also_text);
    return fmt::format("one of {}{}", fmt::join(def.choices, ", "), besides);
  };
  return std::visit(Overloaded{
                        [](bool Settings::*) -> std::string { return "true or false"; },
                        [&](int64_t Settings::*) { return number_text(def, true); },
                        [](uint64_t Settings::*) -> std::string { return "a whole number, 0 or more"; },
                        [&](double Settings::*) { return number_text(def, false); },
                        [&](std::optional<double> Settings::*) { return number_text(def, false); },
                        [&](std::string Settings::*) { return text(); },
                        [&](const EnumMember&) { return text(); },
                        [](Options Settings::*) -> std::string { return "key=value, commas between several"; },
                    },
                    def.member);
}

std::string default_text(const SettingDef& def) {
  return def.model_default ? "the model's" : value_text(Settings{}, def);
}

}  // namespace lockstep::settings
