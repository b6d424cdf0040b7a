#include "launch/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint_store.h"
#include "launch/register_keeper.h"
#include "lockstep/error.h"
#include "observe/trace/merge.h"
#include "process/caught_signals.h"
#include "run/run_directory.h"
#include "train/stop_rules.h"

namespace lockstep::launch {
namespace {

/// Problems only cause warnings: the run itself is done.
void merge_traces(const std::string& run_dir, LaunchEvents& events) {
  std::vector<std::string> problems;
  try {
    problems = observe::merge_traces(run_dir).problems;
  } catch (const Error& error) {
    problems.push_back(fmt::format("the traces of the roles are not merged: {}", error.what()));
  }
  for (const std::string& problem : problems) events.on_warning(problem);
}

SupervisorOptions supervisor_options(const ClusterRun& run, int signals) {
  SupervisorOptions options;
  options.restarts = static_cast<int>(run.settings->restarts);
  options.signals = signals;
  const bool servers =
      std::any_of(run.tasks.begin(), run.tasks.end(), [](const auto& task) { return task.role == cluster::Role::ps; });
  // All-reduce goes on with the remaining members, and none leaves before everything is written.
  if (!servers) options.enough_members = std::max(1, static_cast<int>(run.settings->min_workers));
  options.tick = run.faults ? SupervisorOptions::Time(20) : run.tick;
  return options;
}

JobOutcome supervise(const ClusterRun& run, const SupervisorOptions& options, const Supervisor::Callback& callback) {
  Supervisor supervisor(run.roles, options, callback);
  if (run.signals) {
    run.signals([&](const std::string& role, int number) { supervisor.signal(cluster::parse_task(role), number); });
  }
  return supervisor.run();
}

}  // namespace

bool has_finished(const settings::Settings& settings, const run::RunDirectory& directory) {
  const checkpoint::CheckpointStore store(directory.checkpoints(), settings.keep);
  std::error_code ignored;
  if (store.list().empty() || !std::filesystem::exists(directory.summary_file(), ignored)) return false;
  std::string path;
  const checkpoint::TrainingState state = store.load(settings.checkpoint, path).header.state;
  if (settings.repeat > 0 && state.data.first_pass() >= settings.repeat) return true;
  return train::StopRules::from(settings).check(state, train::RunClock(state.seconds)) != train::StopReason::none;
}

ClusterEnd run_cluster(const ClusterRun& run) {
  std::error_code ignored;
  std::filesystem::remove(run.run_dir + "/summary.json", ignored);  // a resumed run's old summary would be wrong
  if (run.settings->trace) observe::remove_traces(run.run_dir);

  const process::CaughtSignals signals({SIGINT, SIGTERM, SIGHUP, SIGTSTP});
  std::optional<RegisterKeeper> keeper;
  if (run.registered != nullptr) keeper.emplace(*run.registered);
  SupervisorOptions options = supervisor_options(run, signals.fd());
  if (keeper) options.answer = [&](const std::string& line) { return keeper->answer(line); };
  const JobOutcome ended = supervise(run, options, [&](const RoleEvent& event) {
    if (keeper) keeper->on_event(event);
    if (run.also) run.also(event);
    if (run.faults) run.events->on_faults(run.faults());
    run.events->on_role(event);
  });
  run.events->on_roles_ended();
  const std::string missing = run.collect ? run.collect() : "";
  const std::string uncollected = missing.empty() ? "" : "cannot collect the run's files: " + missing;
  if (run.settings->trace) merge_traces(run.run_dir, *run.events);
  if (ended.failure) {
    RoleFailure failure = *ended.failure;
    const bool discarded = run.discard && run.discard();
    if (!uncollected.empty()) failure.text += "; " + uncollected;
    if (ended.code == 2) failure.kind = RoleFailure::Kind::usage;
    if (ended.code != 2 && !discarded) {
      failure.output = run.run_dir;
      failure.saved = checkpoint::newest_step(run.run_dir);
    }
    throw RunError(failure);
  }
  return {ended.code, run.run_dir, uncollected};
}

}  // namespace lockstep::launch
