#include "launch/local_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/cpu_quota.h"
#include "base/file.h"
#include "base/own_program.h"
#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "cluster/launcher_environment.h"
#include "data/catalog.h"
#include "emulate/control_group.h"
#include "emulate/faults.h"
#include "emulate/rights.h"
#include "launch/cluster_run.h"
#include "launch/emulated_nodes.h"
#include "launch/fault_maker.h"
#include "launch/launch_settings.h"
#include "launch/local_launch.h"
#include "launch/mpi_launch.h"
#include "launch/open_files.h"
#include "lockstep/error.h"
#include "process/caught_signals.h"
#include "role/group_member.h"
#include "role/who_decides.h"
#include "run/run_directory.h"
#include "settings/machine.h"
#include "train/data_options.h"

namespace lockstep::launch {
namespace {

using launch::RoleEvent;

/// Places of the roles: emulated nodes, control groups with a CPU quota each (--cpu-quota), or neither. They stay over
/// restarts.
class Places {
 public:
  Places(const settings::Settings& settings, const cluster::ClusterFile& cluster) {
    if (!settings.emulate.empty()) {
      std::vector<NodeRoles> roles;
      for (const cluster::Node& node : cluster.nodes) {
        for (roles.emplace_back(); const cluster::Task& task : node.tasks) roles.back().push_back(task.str());
      }
      nodes_.emplace(settings.emulate, std::move(roles));
    }
    if (settings.cpu_quota <= 0) return;
    if (const std::string why = emulate::why_no_control_groups(); !why.empty()) {
      throw UsageError(fmt::format("--cpu-quota: {}; train without it", why));
    }
    emulate::remove_leftovers();
    for (const cluster::Task& task : cluster.spec.tasks()) {
      quotas_[task.str()] = std::make_unique<emulate::ControlGroup>(
          task.folder(), emulate::GroupLimits{.cores = settings.cpu_quota, .for_what = "cpu-quota"});
    }
  }

  [[nodiscard]] EmulatedNodes* nodes() { return nodes_ ? &*nodes_ : nullptr; }
  [[nodiscard]] bool limited() const { return nodes_ || !quotas_.empty(); }

  void put_on_node(launch::RoleProcess& role) const {
    const std::string name = role.task.str();
    if (nodes_) nodes_->put_on_node(role.command, nodes_->node_of(name));
    const auto found = quotas_.find(name);
    if (found != quotas_.end()) role.command.groups = found->second->files();
  }
  /// Writes how each role was throttled, to explain the run's times.
  void write(const std::string& run_dir, bool ended) const {
    if (nodes_) nodes_->write(run_dir, ended);
    if (quotas_.empty() || !ended) return;
    std::vector<std::pair<std::string, emulate::Throttling>> roles;
    for (const auto& [role, quota] : quotas_) roles.emplace_back(role, quota->throttling());
    base::write_whole_file(run_dir + "/throttling.json", throttling_json(roles));
  }

 private:
  std::optional<EmulatedNodes> nodes_;
  std::map<std::string, std::unique_ptr<emulate::ControlGroup>> quotas_;
};

std::vector<emulate::Fault> wanted_faults(const settings::Settings& settings, const cluster::ClusterFile& cluster) {
  std::vector<std::string> roles;
  for (const cluster::Task& task : cluster.spec.tasks()) roles.push_back(task.str());
  std::vector<emulate::Fault> faults = emulate::parse_faults(settings.faults);
  check_faults(faults, roles, settings.emulate.empty() ? 0 : cluster.nodes.size());
  return faults;
}

/// Returns the threads of each member on an emulated node: its share of the node's cores.
std::map<std::string, int> threads_on(const EmulatedNodes& nodes, const cluster::ClusterFile& cluster) {
  std::map<std::string, int> threads;
  for (size_t i = 0; i < cluster.nodes.size(); ++i) {
    std::vector<std::string> trainers;
    for (const cluster::Task& task : cluster.nodes[i].tasks) {
      if (cluster.spec.member_index(task) >= 0) trainers.push_back(task.str());
    }
    for (const std::string& role : trainers) threads[role] = nodes.threads(i, trainers.size());
  }
  return threads;
}

run::RunDirectory open_run(const settings::Configuration& configuration, const settings::Settings& settings) {
  if (!settings.resume.empty()) return run::RunDirectory::open(settings.resume, settings.runs_dir);
  return run::RunDirectory::create_for(settings, configuration.model(settings.model).name);
}

cluster::ClusterFile make_cluster(const settings::Configuration& configuration, const settings::Settings& settings) {
  cluster::LocalCluster wanted;
  const bool layout_alone = !settings.layout.empty() && !configuration.given("workers");
  wanted.workers = layout_alone ? 0 : static_cast<int>(settings.workers);
  const bool all_reduce = settings.strategy == settings::Strategy::all_reduce;
  if (all_reduce && configuration.given("ps") && settings.resume.empty()) {
    throw UsageError(fmt::format("--ps: {} with --strategy allreduce, which has no parameter servers", settings.ps));
  }
  wanted.ps = all_reduce ? 0 : static_cast<int>(settings.ps);
  wanted.evaluator = settings.evaluator;
  wanted.layout = settings.layout;
  if (!settings.emulate.empty()) wanted.network = kEmulatedNetwork;
  return cluster::local_cluster(wanted);
}

/// True if the workers are to be ranks of one mpirun instead of a process each.
bool wants_mpi(const settings::Settings& settings, const cluster::Spec& spec) {
  if (!spec.ps.empty() || settings.collective != settings::Engine::mpi) return false;
  if (!spec.evaluator.empty()) {
    throw UsageError("--collective: mpi has no place for an evaluator: all its ranks train; use gloo, or no evaluator");
  }
  if (settings.cpu_quota > 0) throw UsageError("--cpu-quota: not with --collective mpi, whose ranks mpirun starts");
  if (!settings.emulate.empty()) throw UsageError("--emulate: not with --collective mpi, whose ranks mpirun starts");
  if (!settings.faults.empty()) throw UsageError("--faults: not with --collective mpi, whose ranks mpirun starts");
  return true;
}

/// Returns the run's path for a role; a resumed run has its settings there, too.
std::string place(const settings::Settings& settings, const std::string& run_dir) {
  return (settings.resume.empty() ? "--run-dir=" : "--resume=") + run_dir;
}

/// Checks the request as far as possible before anything is made.
void check(const settings::Settings& settings, const cluster::Spec& spec) {
  settings::Settings checked = settings;
  if (!settings.emulate.empty()) checked.insecure = true;  // no other machine is in that network
  role::check_cluster_settings(checked, spec, true);
  (void)settings::resolve_threads(settings);  // throws for too many threads, once instead of in every role
  if (!settings.emulate.empty() && settings.cpu_quota > 0) {
    throw UsageError("--cpu-quota: not with --emulate, which gives nodes their cores: cores=0.5");
  }
}

/// Returns the threads of each worker; 0: a share of the cores. The setting of a resumed run stands only for as many
/// workers as before: one process may have used all cores.
int64_t threads_wanted(const settings::Configuration& configuration, const settings::Settings& settings,
                       const cluster::Spec& spec, const std::string& run_dir) {
  const bool stands = settings.resume.empty() || configuration.given("threads") || same_workers(settings, run_dir);
  if (stands) return settings.threads;
  if (!settings.emulate.empty()) return 0;
  return std::min<int64_t>(settings.threads, share_cores(base::useful_threads(), spec, 0).worker_threads);
}

launch::LocalJob make_job(const settings::Configuration& configuration, const settings::Settings& settings,
                          const cluster::ClusterFile& cluster, Places& places, const std::string& run_dir) {
  launch::LocalJob job;
  job.spec = cluster.spec;
  job.program = base::own_program();
  job.words = role_words(configuration);
  job.words.push_back(place(settings, run_dir));
  if (places.nodes() != nullptr) job.words.emplace_back("--insecure");
  job.cluster_file = run_dir + "/cluster.yaml";
  const int64_t threads = threads_wanted(configuration, settings, cluster.spec, run_dir);
  job.shares =
      launch::share_cores(base::useful_threads(), cluster.spec, static_cast<int>(threads), base::available_cores());
  if (places.limited()) job.shares.all_fit = false;  // spinning would use up the quota
  if (places.nodes() != nullptr && threads == 0) {
    job.threads = threads_on(*places.nodes(), cluster);
    job.shares.worker_threads = job.threads.at(cluster.spec.chief_task().str());
  }
  job.wait_policy = settings::value_text(settings, "wait-policy");
  return job;
}

}  // namespace

void find_data(const settings::Configuration& configuration, const settings::Settings& settings,
               const data::FetchCallback& progress) {
  const data::LoadOptions options = train::data_options(settings, configuration.model(settings.model).image);
  if (settings.dataset == "images" || settings.dataset == "synthetic") return;
  (void)data::load(settings.dataset, options, progress);
}

ClusterEnd run_local_cluster(const settings::Configuration& configuration, const settings::Settings& settings,
                             const Launcher& launcher) {
  find_data(configuration, settings, launcher.fetch_progress);
  const cluster::ClusterFile cluster = make_cluster(configuration, settings);
  const cluster::Spec& spec = cluster.spec;
  check(settings, spec);
  launch::check_open_files_of_job(spec, true);
  const bool mpi = wants_mpi(settings, spec);
  const std::vector<emulate::Fault> wanted = wanted_faults(settings, cluster);
  if (!settings.resume.empty()) {
    const run::RunDirectory resumed = run::RunDirectory::open(settings.resume, settings.runs_dir);
    if (has_finished(settings, resumed))
      return {.run_dir = resumed.path(), .uncollected = "", .already_finished = true};
  }
  // Lives until the nodes are gone, so a signal while making them leaves nothing behind.
  const process::CaughtSignals held({SIGINT, SIGTERM, SIGHUP, SIGTSTP});
  Places places(settings, cluster);
  ScheduledFaults faults(wanted, spec.tasks().size(), places.nodes() == nullptr ? nullptr : &places.nodes()->cluster());
  run::RunDirectory directory = open_run(configuration, settings);
  const std::string& run_dir = directory.path();

  launch::LocalJob job = make_job(configuration, settings, cluster, places, run_dir);
  job.name = launcher.argv[0];
  job.launched = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  base::write_whole_file(job.cluster_file, launch::cluster_yaml(spec));
  base::write_whole_file(run_dir + "/launch.yaml", launch_yaml(settings));
  if (settings.resume.empty()) base::write_whole_file(directory.config_file(), to_yaml(settings));
  places.write(run_dir, false);
  launcher.events->on_opening(
      {spec, run_dir, job.shares.worker_threads, places.nodes() != nullptr ? places.nodes()->text() : ""});

  ClusterRun run;
  run.settings = &settings;
  run.run_dir = run_dir;
  run.events = launcher.events;
  run.tick = launcher.tick;
  run.tasks = spec.tasks();
  if (mpi) {
    job.program = std::filesystem::canonical(job.program);
    run.roles = {launch::mpi_job(job, cluster::process_environment())};
  } else {
    job.registers = role::launcher_decides(settings, spec);
    run.roles = launch::local_roles(job);
    if (job.registers) run.registered = &spec;
    for (launch::RoleProcess& role : run.roles) places.put_on_node(role);
  }
  run.also = [&](const RoleEvent& event) {
    faults.on_event(event);
    if (event.kind != RoleEvent::Kind::died || places.nodes() == nullptr) return;
    const std::string folder = event.task == spec.chief_task() ? run_dir : run_dir + "/" + event.task.folder();
    places.nodes()->note_memory(event.task.str(), folder + "/monitor.csv");
  };
  if (!faults.empty()) run.faults = [&] { return faults.make_due(run_dir + "/faults.jsonl"); };
  run.collect = [&] {
    places.write(run_dir, true);
    return std::string();
  };
  run.discard = [&] { return directory.discard_if_unused(); };
  return run_cluster(run);
}

}  // namespace lockstep::launch
