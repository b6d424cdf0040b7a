#include "lab/run_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

namespace lockstep::lab {
namespace {

constexpr size_t kLongestValue = 40;
constexpr size_t kLongestKey = 160;

/// Keeps letters, digits and . = + - _ and replaces the rest by '_'.
std::string fit_for_folder(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kLongestValue)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 128 && (std::isalnum(byte) != 0 || std::string_view(".=+-_").find(c) != std::string_view::npos);
    result += plain ? c : '_';
  }
  return result;
}

/// Names commands by their scripts, or by their first words: "train.py". Different commands, or logs, get different
/// names.
class CommandNames {
 public:
  std::string of(const std::vector<std::string>& command, const std::vector<std::string>& logs) {
    const std::vector<std::string>& words = command.empty() ? logs : command;
    const auto known = names_.find(words);
    if (known != names_.end()) return known->second;
    const std::string name = command.empty() ? "logs" : name_of(command);
    std::string unique = name;
    for (int n = 2; !taken_.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    return names_[words] = unique;
  }

 private:
  static std::string name_of(const std::vector<std::string>& command) {
    const auto script = std::find_if(command.begin(), command.end(), [](const std::string& word) {
      const std::string extension = std::filesystem::path(word).extension().string();
      const bool named = extension.size() > 1 && std::isalpha(static_cast<unsigned char>(extension[1])) != 0;
      return named && !word.starts_with("-") && word.find('{') == std::string::npos;
    });
    const std::string& word = script == command.end() ? command.front() : *script;
    return fit_for_folder(std::filesystem::path(word).filename().string());
  }

  std::map<std::vector<std::string>, std::string> names_;
  std::set<std::string> taken_;
};

/// Returns the settings and the cluster's properties, as if those were settings.
Values all_of(const RunPlan& plan, CommandNames& commands) {
  Values all = plan.settings;
  all.emplace_back("emulate", plan.cluster.emulate);
  all.emplace_back("faults", plan.cluster.faults);
  all.emplace_back("hosts", plan.cluster.hosts);
  if (plan.is_guest()) all.emplace_back("command", commands.of(plan.guest.command, plan.guest.logs));
  return all;
}

/// Returns the names in the order of their first appearance.
std::vector<std::string> names_that_vary(const std::vector<Values>& all) {
  std::vector<std::string> names;
  for (const Values& values : all) {
    for (const auto& [name, value] : values) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    const std::string first = value_of(all.front(), name);
    return std::all_of(all.begin(), all.end(), [&](const Values& v) { return value_of(v, name) == first; });
  });
  return names;
}

std::string key_of(const RunPlan& plan) {
  std::string key = plan.group;
  for (const auto& [name, value] : plan.varied) {
    const std::string shown = name.starts_with("options.") ? name.substr(8) : name;
    key += fmt::format("-{}={}", fit_for_folder(shown), fit_for_folder(value));
  }
  if (key.size() <= kLongestKey) return key;
  return fmt::format("{}-{}", plan.group, fit_for_folder(plan.label));
}

}  // namespace

void name_runs(std::vector<Variation>& variations) {
  std::vector<Values> all;
  CommandNames commands;
  for (const Variation& variation : variations) all.push_back(all_of(variation.plan, commands));
  const std::vector<std::string> names = names_that_vary(all);
  std::set<std::string> taken;
  for (size_t i = 0; i < variations.size(); ++i) {
    Variation& variation = variations[i];
    for (const std::string& name : names) {
      const std::string value = value_of(all[i], name);
      if (!value.empty()) variation.plan.varied.emplace_back(name, value);
    }
    const std::string key = key_of(variation.plan);
    std::string unique = key;
    for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}", key, n);
    variation.plan.key = unique;
  }
}

}  // namespace lockstep::lab
