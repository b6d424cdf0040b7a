// lockstep lab run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/limits.h"
#include "data/catalog.h"
#include "data/own_data.h"
#include "display/fetch_display.h"
#include "lab/database.h"
#include "lab/environment.h"
#include "lab/runner.h"
#include "lab_commands.h"
#include "lab_display.h"
#include "lab_plan.h"
#include "lab_report.h"
#include "lab_results.h"
#include "lockstep/error.h"
#include "terminal/text.h"
#include "version.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kOpenFiles = 24;  ///< for the database, locks and a run's pipes

/// Finds or fetches the data of all runs before the first run, so that missing data is reported once.
void find_data(const std::vector<const lab::RunPlan*>& runs, const std::string& folder, bool quiet) {
  std::set<std::pair<std::string, std::string>> wanted;
  for (const lab::RunPlan* plan : runs) {
    if (!plan->cluster.hosts.empty() || plan->is_guest()) continue;
    const std::string own = lab::value_of(plan->settings, "data");
    wanted.emplace(lab::value_of(plan->settings, "dataset"), folder.empty() ? own : folder);
  }
  for (const auto& [name, where] : wanted) {
    if (name.empty() || data::is_own_data(name)) continue;
    (void)data::fetch(name, data::SourceOptions::from_environment(where),
                      display::fetch_display(terminal::Terminal::detect(), quiet));
  }
}

/// Quotes a word for a shell if needed.
std::string word(const std::string& text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos;
  return plain ? text : "'" + terminal::replaced(text, "'", "'\\''") + "'";
}

/// Returns the command that runs the experiment again.
std::string command_text(const LabRunArguments& arguments, const lab::Experiment& experiment) {
  std::string text = "lockstep lab run " + word(arguments.file);
  if (!experiment.scale.empty()) text += " --scale " + experiment.scale;
  for (const std::string& pattern : arguments.only) text += " --only " + word(pattern);
  if (arguments.lab_dir != "lab") text += " --lab-dir " + word(arguments.lab_dir);
  if (!arguments.data.empty()) text += " --data " + word(arguments.data);
  for (const std::string& setting : arguments.set) text += " --set " + word(setting);
  if (arguments.local) text += " --local";
  if (arguments.retries >= 0) text += fmt::format(" --retries {}", arguments.retries);
  return text;
}

lab::Overrides overrides(const LabRunArguments& arguments) {
  lab::Overrides result;
  result.local = arguments.local;
  for (const std::string& setting : arguments.set) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw UsageError(
          fmt::format("--set: '{}' has no '='; it takes NAME=VALUE, such as dataset=fashion-mnist", setting));
    }
    result.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return result;
}

/// The experiment's earlier results in the lab; nothing if it is new.
struct Earlier {
  std::vector<lab::RunResult> runs;
  std::set<std::string> finished;  ///< keys of runs that would not be made again
};

Earlier earlier(const std::string& lab_dir, const lab::Experiment& experiment) {
  if (!lab::is_lab(lab_dir)) return {};
  const lab::Database database(lab_dir, lab::Database::Access::read);
  for (const lab::ExperimentRow& row : database.experiments()) {
    if (row.name != experiment.name || row.scale != experiment.scale) continue;
    return {database.results(row.id).runs, database.finished(experiment)};
  }
  return {};
}

int show_plan(const LabRunArguments& arguments, const lab::Experiment& experiment,
              const std::vector<const lab::RunPlan*>& chosen, const Invocation& invocation) {
  const Earlier before = earlier(arguments.lab_dir, experiment);
  const lab::Clock clock(invocation.models, experiment, before.runs);
  std::vector<PlannedRun> runs;
  for (const lab::RunPlan* plan : chosen) {
    runs.push_back({plan, clock.seconds(plan->key), before.finished.contains(plan->key) && !arguments.again});
  }
  if (arguments.json) {
    terminal::write_out(plan_json(experiment, runs));
  } else {
    print_plan(experiment, runs);
  }
  return 0;
}

void print_outcome(const LabRunArguments& arguments, const lab::RunnerOutcome& outcome, const std::string& report) {
  if (arguments.json) {
    const Json json = {{"done", outcome.done},
                       {"failed", outcome.failed},
                       {"disturbed", outcome.disturbed},
                       {"done_before", outcome.before},
                       {"folder", outcome.folder},
                       {"report", report},
                       {"interrupted", outcome.signal != 0}};
    terminal::print("{}\n", json.dump(2));
    return;
  }
  const std::string before = outcome.before == 0 ? "" : fmt::format(", {} done before", outcome.before);
  const std::string failed = outcome.failed == 0 ? "" : fmt::format(", {} failed", outcome.failed);
  terminal::print("\n{} done{}{}\n", terminal::counted(outcome.done, "run"), before, failed);
  if (outcome.disturbed > 0) {
    terminal::print("{} disturbed, with wrong times; `--again` repeats finished runs\n",
                    terminal::counted(outcome.disturbed, "run"));
  }
  if (!report.empty()) terminal::print("report: {}\n", report);
}

}  // namespace

int lab_run(const LabRunArguments& arguments, const Invocation& invocation) {
  if (arguments.retries > lab::kMostRetries) {
    throw UsageError(
        fmt::format("--retries: {} is not allowed; it takes 0 to {}", arguments.retries, lab::kMostRetries));
  }
  const lab::Experiment experiment = lab::load_experiment(
      arguments.file, arguments.scale, {.models = invocation.models, .overrides = overrides(arguments)});
  const std::vector<const lab::RunPlan*> chosen = chosen_runs(experiment, arguments.only);
  if (arguments.dry_run) return show_plan(arguments, experiment, chosen, invocation);

  base::check_open_files(kOpenFiles, "the lab");
  find_data(chosen, arguments.data, arguments.json);
  lab::RunnerOptions options;
  options.lab_dir = arguments.lab_dir;
  options.data = arguments.data;
  options.program = invocation.argv[0];
  for (const lab::RunPlan* plan : chosen) options.keys.push_back(plan->key);
  options.again = arguments.again;
  if (arguments.retries >= 0) options.retries = static_cast<int>(arguments.retries);
  options.command = command_text(arguments, experiment);
  options.environment =
      lab::environment(fmt::format("lockstep {}", kVersion), fmt::format("{}, {}", kCompiler, kBuildType));
  options.models = invocation.models;
  LabDisplay display(experiment, chosen.size(), terminal::Terminal::detect(), arguments.json);
  const lab::RunnerOutcome outcome =
      lab::run_experiment(experiment, options, [&](const lab::RunnerEvent& event) { display.show(event); });
  display.end();
  if (outcome.signal != 0) {
    const std::string go_on = invocation.program + options.command.substr(options.command.find(' '));
    const std::string rest = arguments.again ? fmt::format("`{} --again` repeats all runs", go_on)
                                             : fmt::format("`{}` runs the rest", go_on);
    terminal::print_note(terminal::Terminal::detect(), "interrupted",
                         fmt::format("{} done; {}", terminal::counted(outcome.done + outcome.before, "run"), rest));
    if (arguments.json) print_outcome(arguments, outcome, "");
    return 128 + outcome.signal;
  }
  const std::string report = write_report(arguments.lab_dir, outcome.experiment, outcome.folder + "/report.html");
  if (!arguments.json) {
    print_findings(lab::Database(arguments.lab_dir, lab::Database::Access::read).results(outcome.experiment));
  }
  print_outcome(arguments, outcome, report);
  if (outcome.failed == 0) return 0;
  throw Error(fmt::format("{} of {} failed; their logs are in {}/logs, and the next `lockstep lab run` repeats {}",
                          outcome.failed, terminal::counted(outcome.done + outcome.failed, "run"), outcome.folder,
                          arguments.again ? "those without a result" : "them"));
}

}  // namespace lockstep::tools
