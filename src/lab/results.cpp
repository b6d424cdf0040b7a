#include "lab/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "records/statistics.h"
#include "settings/settings.h"

namespace lockstep::lab {
namespace {

using records::kUnknown;

double as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? value : kUnknown;
}

bool same(const std::string& a, const std::string& b) {
  return a == b || as_number(a) == as_number(b);  // NaN never equals anything
}

/// Returns the number of roles on hosts, which the cluster file decides: the roles that the run had; empty if unknown.
std::string roles_text(const RunResult& run, std::string_view field) {
  const auto& roles = run.measured.roles;
  if (roles.empty()) return "";
  const auto count = std::count_if(roles.begin(), roles.end(), [&](const RoleMeasured& role) {
    const bool server = role.role.starts_with("ps:");
    return field == "ps" ? server : !server && !role.role.starts_with("evaluator:");
  });
  return std::to_string(count);
}

}  // namespace

std::string_view name(RunState state) {
  switch (state) {
    case RunState::planned:
      return "planned";
    case RunState::running:
      return "running";
    case RunState::done:
      return "done";
    case RunState::failed:
      return "failed";
  }
  return "";
}

std::string RunResult::text(std::string_view field) const {
  if (field == "group") return plan.group;
  if (field == "label") return plan.label;
  if (field == "repeat") return std::to_string(plan.repeat);
  if (field == "emulate") return plan.cluster.emulate;
  if (field == "faults") return plan.cluster.faults;
  if (field == "hosts") return plan.cluster.hosts;
  if (const std::string tag = value_of(plan.tags, field); !tag.empty()) return tag;
  if (!plan.cluster.hosts.empty() && (field == "workers" || field == "ps")) return roles_text(*this, field);
  if (const settings::SettingDef* def = settings::find_setting(field)) return value_of(plan.settings, def->name);
  return value_of(plan.settings, field);
}

double RunResult::number(std::string_view field) const {
  const auto found = measured.values.find(field);
  return found != measured.values.end() ? found->second : as_number(text(field));
}

std::string log_of(const Results& results, const RunResult& run) {
  if (run.folder.empty()) return "";
  return fmt::format("{}/logs/{}.log", results.folder, std::filesystem::path(run.folder).filename().string());
}

int restarts(const RunResult& run) {
  const auto found = run.measured.values.find("restarts");
  return found == run.measured.values.end() ? 0 : static_cast<int>(found->second);
}

std::string given_or_default(const RunResult& run, const std::string& field) {
  std::string text = run.text(field);
  if (!text.empty() || value_of(run.plan.tags, field) != "") return text;
  const settings::SettingDef* def = settings::find_setting(field);
  return def == nullptr || def->model_default ? text : settings::value_text(settings::Settings{}, *def);
}

bool of_part(std::string_view field) {
  return field == "worker" || field == "role" || field == "node" || field == "with_server";
}

bool passes(const RunResult& run, const Filter& filter) {
  const auto& groups = filter.groups;
  if (!groups.empty() && std::find(groups.begin(), groups.end(), run.plan.group) == groups.end()) return false;
  return std::all_of(filter.where.begin(), filter.where.end(), [&](const auto& condition) {
    if (of_part(condition.first)) return true;
    const std::string text = given_or_default(run, condition.first);
    return std::any_of(condition.second.begin(), condition.second.end(),
                       [&](const std::string& wanted) { return same(text, wanted); });
  });
}

}  // namespace lockstep::lab
