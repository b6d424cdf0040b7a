// Shows the plan of an experiment.
#include "lab_plan.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/suggest.h"
#include "lab/estimate.h"
#include "lab_commands.h"
#include "lab_json.h"
#include "launch/ssh_launch.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the key without the repeat's number.
std::string variation_of(const lab::RunPlan& plan) { return plan.key.substr(0, plan.key.rfind("-r")); }

/// Returns whether a name matches the run: a pattern of its key, or its label, as `lab show` prints it.
bool is_called(const lab::RunPlan& plan, const std::string& name) {
  if (fnmatch(name.c_str(), plan.key.c_str(), 0) == 0) return true;
  if (plan.label.empty()) return false;
  const std::string repeat = fmt::format(", r{}", plan.repeat);
  const std::string in_group = plan.group + ": " + plan.label;
  return name == plan.label || name == plan.label + repeat || name == in_group || name == in_group + repeat;
}

/// Returns a hint for a name that no run has: the nearest name, or some names.
std::string instead_text(const std::string& name, const std::vector<std::string>& names) {
  constexpr size_t kSome = 3;
  if (const std::string nearest = base::nearest(name, names); !nearest.empty()) {
    return fmt::format(" (did you mean '{}'?)", nearest);
  }
  std::string some;
  for (size_t i = 0; i < std::min(names.size(), kSome); ++i) {
    some += fmt::format("{}'{}'", some.empty() ? "" : ", ", names[i]);
  }
  return some.empty() ? "" : fmt::format(" (there are {}{})", some, names.size() > kSome ? ", ..." : "");
}

}  // namespace

std::vector<const lab::RunPlan*> chosen_runs(const lab::Experiment& experiment, const std::vector<std::string>& only) {
  std::vector<const lab::RunPlan*> chosen;
  std::vector<bool> matched(only.size(), false);
  std::vector<std::string> names;
  for (const lab::Group& group : experiment.groups) {
    for (const lab::RunPlan& plan : group.runs) {
      names.push_back(plan.key);
      if (!plan.label.empty() && std::find(names.begin(), names.end(), plan.label) == names.end()) {
        names.push_back(plan.label);
      }
      bool wanted = only.empty();
      for (size_t i = 0; i < only.size(); ++i) {
        if (!is_called(plan, only[i])) continue;
        wanted = matched[i] = true;
      }
      if (wanted) chosen.push_back(&plan);
    }
  }
  const auto missing = std::find(matched.begin(), matched.end(), false);
  if (missing != matched.end()) {
    const std::string& pattern = only[static_cast<size_t>(missing - matched.begin())];
    throw UsageError(fmt::format("--only: no run is called '{}'{}; `lockstep lab run {} --dry-run` lists the runs",
                                 pattern, instead_text(pattern, names), launch::shell_word(experiment.file)));
  }
  return chosen;
}

std::string cluster_text(const lab::RunPlan& plan) {
  const auto setting = [&](const char* name) { return lab::value_of(plan.settings, name); };
  const lab::Roles roles = lab::roles_of(plan);
  std::string text;
  const std::string layout = setting("layout");
  if (!plan.cluster.hosts.empty()) {
    text = "hosts of " + plan.cluster.hosts;
  } else if (!layout.empty()) {
    text = layout;
  } else if (roles.cluster) {
    text = terminal::counted(roles.trainers, "worker");
    if (!roles.all_reduce) text += ", " + terminal::counted(roles.servers, "server");
  } else {
    const std::string replicas = setting("replicas");
    text = replicas.empty() || replicas == "0" ? "one process" : terminal::counted(std::stoull(replicas), "replica");
  }
  if (plan.is_guest()) {
    if (text.starts_with("one process")) text = "one program";
    text += text == "one program" ? "" : ", any program";
  } else if (roles.all_reduce) {
    text += ", all-reduce";
  } else if (roles.cluster || setting("mode") == "async") {
    text += setting("mode") == "async" ? ", async" : ", sync";
  }
  if (!plan.cluster.emulate.empty()) text += "; emulated: " + plan.cluster.emulate;
  if (!plan.cluster.faults.empty()) text += "; faults: " + plan.cluster.faults;
  return text;
}

std::string length_text(const lab::RunPlan& plan) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto number = [&](const char* name, const char* noun) {
    const std::string value = lab::value_of(plan.settings, name);
    if (!value.empty() && value != "0") add(value + " " + noun + (value == "1" ? "" : "s"));
  };
  number("epochs", "epoch");
  number("steps", "step");
  number("seconds", "second");
  for (const auto& [name, said] :
       {std::pair("stop-loss", "until loss "), std::pair("stop-accuracy", "until accuracy ")}) {
    const std::string value = lab::value_of(plan.settings, name);
    if (!value.empty()) add(said + value);
  }
  return text.empty() ? "default epochs" : text;
}

void print_plan(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  terminal::print("{}{}: {}\n", terminal.bold(experiment.title),
                  experiment.scale.empty() ? "" : " (" + experiment.scale + ")", terminal::counted(runs.size(), "run"));
  terminal::Table table({{"run"},
                         {"repeats", terminal::Table::Align::right},
                         {"cluster"},
                         {"length"},
                         {"about", terminal::Table::Align::right},
                         {"state"}});
  double total = 0;
  for (size_t i = 0; i < runs.size();) {
    const std::string variation = variation_of(*runs[i].plan);
    double seconds = 0;
    size_t done = 0;
    const size_t first = i;
    for (; i < runs.size() && variation_of(*runs[i].plan) == variation; ++i) {
      seconds += runs[i].done ? 0 : runs[i].seconds;
      done += runs[i].done ? 1 : 0;
    }
    const size_t count = i - first;
    total += seconds;
    table.add({variation, std::to_string(count), cluster_text(*runs[first].plan), length_text(*runs[first].plan),
               done == count ? "" : terminal::duration_text(seconds),
               done == 0 ? "" : (done == count ? "done" : fmt::format("{} done", done))});
  }
  table.drop_empty_columns();
  terminal::write_out(table.text(terminal, terminal::Terminal::width(), 1));
  const auto left =
      static_cast<uint64_t>(std::count_if(runs.begin(), runs.end(), [](const PlannedRun& r) { return !r.done; }));
  terminal::print("{} to do, estimated time {}\n", terminal::counted(left, "run"), terminal::duration_text(total));
}

std::string plan_json(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs) {
  Json list = Json::array();
  double total = 0;
  for (const PlannedRun& run : runs) {
    const lab::RunPlan& plan = *run.plan;
    total += run.done ? 0 : run.seconds;
    list.push_back({{"key", plan.key},
                    {"group", plan.group},
                    {"label", plan.label},
                    {"repeat", plan.repeat},
                    {"settings", as_json(plan.settings)},
                    {"varied", as_json(plan.varied)},
                    {"tags", as_json(plan.tags)},
                    {"emulate", plan.cluster.emulate},
                    {"faults", plan.cluster.faults},
                    {"hosts", plan.cluster.hosts},
                    {"done", run.done},
                    {"estimated_seconds", run.seconds}});
  }
  const Json all = {{"experiment", experiment.name},
                    {"scale", experiment.scale},
                    {"title", experiment.title},
                    {"runs", list},
                    {"estimated_seconds", total}};
  return all.dump(2) + "\n";
}

}  // namespace lockstep::tools
