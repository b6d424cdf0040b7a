#include "local_cluster.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "cluster/launcher_environment.h"
#include "cluster/local_launch.h"
#include "cluster/mpi_launch.h"
#include "cluster_run.h"
#include "data/catalog.h"
#include "emulate/cpu_quota.h"
#include "fetch_display.h"
#include "lockstep/error.h"
#include "output.h"
#include "text.h"
#include "train/data_options.h"
#include "train/group_member.h"
#include "train/machine.h"
#include "train/run_directory.h"
#include "train_arguments.h"

namespace lockstep::tools {
namespace {

using cluster::RoleEvent;

/// A CPU quota for each role, kept over its restarts; nothing without --cpu-quota.
class Quotas {
 public:
  Quotas(const cluster::Spec& spec, double cores) {
    if (cores <= 0) return;
    emulate::remove_leftover_quotas();
    for (const cluster::Task& task : spec.tasks()) {
      quotas_[task.str()] = std::make_unique<emulate::CpuQuota>(task.folder(), cores);
    }
  }
  void on_event(const RoleEvent& event) {
    if (event.kind != RoleEvent::Kind::started && event.kind != RoleEvent::Kind::restarted) return;
    const auto found = quotas_.find(event.task.str());
    if (found != quotas_.end()) found->second->add(event.pid);
  }
  /// How each role was held back, for whoever reads the run's times.
  void write(const std::string& path) const {
    if (quotas_.empty()) return;
    nlohmann::ordered_json roles;
    for (const auto& [role, quota] : quotas_) {
      const emulate::Throttling throttling = quota->throttling();
      roles[role] = {{"periods", throttling.periods},
                     {"throttled_periods", throttling.throttled_periods},
                     {"throttled_seconds", throttling.throttled_seconds}};
    }
    base::write_whole_file(path, roles.dump(2) + "\n");
  }

 private:
  std::map<std::string, std::unique_ptr<emulate::CpuQuota>> quotas_;
};

train::RunDirectory open_run(const train::Configuration& configuration, const train::Settings& settings) {
  if (!settings.resume.empty()) return train::RunDirectory::open(settings.resume, settings.runs_dir);
  return train::RunDirectory::create_for(settings, configuration.model(settings.model).name);
}

cluster::Spec make_spec(const train::Configuration& configuration, const train::Settings& settings) {
  cluster::LocalCluster wanted;
  const bool layout_alone = !settings.layout.empty() && !configuration.given("workers");
  wanted.workers = layout_alone ? 0 : static_cast<int>(settings.workers);
  const bool all_reduce = settings.strategy == "allreduce";
  if (all_reduce && configuration.given("ps") && settings.resume.empty()) {
    throw UsageError(fmt::format("--ps: {} with --strategy allreduce, which has no parameter servers", settings.ps));
  }
  wanted.ps = all_reduce ? 0 : static_cast<int>(settings.ps);
  wanted.evaluator = settings.evaluator;
  wanted.layout = settings.layout;
  return cluster::local_spec(wanted);
}

/// The ranks of one mpirun instead of a process for each role.
bool wants_mpi(const train::Settings& settings, const cluster::Spec& spec) {
  if (!spec.ps.empty() || settings.collective != "mpi") return false;
  if (!spec.evaluator.empty()) {
    throw UsageError("--collective: mpi has no place for an evaluator: all its ranks train; use gloo, or no evaluator");
  }
  if (settings.cpu_quota > 0) throw UsageError("--cpu-quota: not with --collective mpi, whose ranks mpirun starts");
  return true;
}

void print_opening(const train::Settings& settings, const cluster::Spec& spec, const std::string& run_dir,
                   int threads) {
  const Terminal terminal = Terminal::detect();
  const std::string how = spec.ps.empty()
                              ? "all-reduce"
                              : fmt::format("{}, {}", counted(spec.ps.size(), "parameter server"), settings.mode);
  print("{} on {}: {} of {}{}, {}\n", terminal.bold(settings.model), terminal.bold(settings.dataset),
        counted(spec.members().size(), "worker"), counted(static_cast<uint64_t>(threads), "thread"),
        spec.evaluator.empty() ? "" : ", an evaluator", how);
  print("kept in {}\n\n", run_dir);
  flush_out();
}

/// Where the run is, as a role is told: in a resumed one its settings lie there too.
std::string place(const train::Settings& settings, const std::string& run_dir) {
  return (settings.resume.empty() ? "--run-dir=" : "--resume=") + run_dir;
}

/// What the roles would each find missing, or fetch at the same time, is found or fetched here, once. Data that is made
/// is left to them.
void find_data(const train::Configuration& configuration, const train::Settings& settings) {
  const data::LoadOptions options = train::data_options(settings, configuration.model(settings.model).image);
  if (settings.dataset == "images" || settings.dataset == "synthetic") return;
  (void)data::load(settings.dataset, options, fetch_display(Terminal::detect(), settings.quiet));
}

}  // namespace

int run_local_cluster(const train::Configuration& configuration, const train::Settings& settings,
                      const Invocation& invocation) {
  find_data(configuration, settings);
  const cluster::Spec spec = make_spec(configuration, settings);
  train::check_cluster_settings(settings, spec);
  const bool mpi = wants_mpi(settings, spec);
  Quotas quotas(spec, settings.cpu_quota);
  (void)train::resolve_threads(settings);  // what is too many is found here, once
  const train::RunDirectory directory = open_run(configuration, settings);
  const std::string& run_dir = directory.path();

  cluster::LocalJob job;
  job.spec = spec;
  job.program = "/proc/self/exe";
  job.name = invocation.argv[0];
  job.words = role_words(configuration);
  job.words.push_back(place(settings, run_dir));
  job.cluster_file = run_dir + "/cluster.yaml";
  job.shares = cluster::share_cores(base::available_cores(), spec, static_cast<int>(settings.threads));
  if (settings.cpu_quota > 0) job.shares.all_fit = false;  // who spins uses up its quota
  job.wait_policy = settings.wait_policy;
  base::write_whole_file(job.cluster_file, cluster::cluster_yaml(spec));
  base::write_whole_file(run_dir + "/launch.yaml", launch_yaml(settings));
  if (settings.resume.empty()) base::write_whole_file(directory.config_file(), to_yaml(settings));
  if (!settings.quiet) print_opening(settings, spec, run_dir, job.shares.worker_threads);

  ClusterRun run;
  run.settings = &settings;
  run.run_dir = run_dir;
  run.program = invocation.program;
  run.tasks = spec.tasks();
  if (mpi) {
    job.program = std::filesystem::read_symlink(job.program);
    run.roles = {cluster::mpi_job(job, cluster::process_environment())};
  } else {
    run.roles = cluster::local_roles(job);
  }
  run.also = [&](const RoleEvent& event) { quotas.on_event(event); };
  run.collect = [&] { quotas.write(run_dir + "/throttling.json"); };
  return run_cluster(run);
}

}  // namespace lockstep::tools
