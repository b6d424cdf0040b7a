#include "local_cluster.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "cluster/launcher_environment.h"
#include "cluster/local_launch.h"
#include "cluster/mpi_launch.h"
#include "cluster/open_files.h"
#include "cluster_run.h"
#include "data/catalog.h"
#include "emulate/control_group.h"
#include "emulate/faults.h"
#include "emulate/rights.h"
#include "emulated_nodes.h"
#include "fault_maker.h"
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

/// Where the roles are: on emulated nodes, in groups with a CPU quota each (--cpu-quota), or simply here. It is kept
/// over their restarts.
class Places {
 public:
  Places(const train::Settings& settings, const cluster::ClusterFile& cluster) {
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

  void seat(cluster::RoleProcess& role) const {
    const std::string name = role.task.str();
    if (nodes_) nodes_->seat(role.command, nodes_->node_of(name));
    const auto found = quotas_.find(name);
    if (found != quotas_.end()) role.command.groups = found->second->files();
  }
  /// How each role was held back, for whoever reads the run's times.
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

/// The faults, of roles as events tell of them.
class Faults {
 public:
  Faults(const std::vector<emulate::Fault>& wanted, size_t roles, EmulatedNodes* nodes)
      : maker_(wanted, nodes == nullptr ? nullptr : &nodes->cluster()), roles_(roles) {}

  [[nodiscard]] bool empty() const { return maker_.empty(); }
  void on_event(const RoleEvent& event) {
    if (event.kind == RoleEvent::Kind::started || event.kind == RoleEvent::Kind::restarted)
      maker_.started(event.task.str(), event.pid);
    if (event.kind == RoleEvent::Kind::died || event.kind == RoleEvent::Kind::ended) maker_.ended(event.task.str());
    if (event.kind == RoleEvent::Kind::started && ++started_ == roles_) maker_.begin();
  }
  std::vector<std::string> make_due(const std::string& file) { return maker_.make_due(file); }

 private:
  FaultMaker maker_;
  size_t roles_;
  size_t started_ = 0;
};

std::vector<emulate::Fault> wanted_faults(const train::Settings& settings, const cluster::ClusterFile& cluster) {
  std::vector<std::string> roles;
  for (const cluster::Task& task : cluster.spec.tasks()) roles.push_back(task.str());
  std::vector<emulate::Fault> faults = emulate::parse_faults(settings.faults);
  check_faults(faults, roles, settings.emulate.empty() ? 0 : cluster.nodes.size());
  return faults;
}

/// Each who trains on an emulated node has its share of the node's cores.
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

train::RunDirectory open_run(const train::Configuration& configuration, const train::Settings& settings) {
  if (!settings.resume.empty()) return train::RunDirectory::open(settings.resume, settings.runs_dir);
  return train::RunDirectory::create_for(settings, configuration.model(settings.model).name);
}

cluster::ClusterFile make_cluster(const train::Configuration& configuration, const train::Settings& settings) {
  cluster::LocalCluster wanted;
  const bool layout_alone = !settings.layout.empty() && !configuration.given("workers");
  wanted.workers = layout_alone ? 0 : static_cast<int>(settings.workers);
  const bool all_reduce = settings.strategy == train::Strategy::all_reduce;
  if (all_reduce && configuration.given("ps") && settings.resume.empty()) {
    throw UsageError(fmt::format("--ps: {} with --strategy allreduce, which has no parameter servers", settings.ps));
  }
  wanted.ps = all_reduce ? 0 : static_cast<int>(settings.ps);
  wanted.evaluator = settings.evaluator;
  wanted.layout = settings.layout;
  if (!settings.emulate.empty()) wanted.network = kEmulatedNetwork;
  return cluster::local_cluster(wanted);
}

/// The ranks of one mpirun instead of a process for each role.
bool wants_mpi(const train::Settings& settings, const cluster::Spec& spec) {
  if (!spec.ps.empty() || settings.collective != train::Engine::mpi) return false;
  if (!spec.evaluator.empty()) {
    throw UsageError("--collective: mpi has no place for an evaluator: all its ranks train; use gloo, or no evaluator");
  }
  if (settings.cpu_quota > 0) throw UsageError("--cpu-quota: not with --collective mpi, whose ranks mpirun starts");
  if (!settings.emulate.empty()) throw UsageError("--emulate: not with --collective mpi, whose ranks mpirun starts");
  if (!settings.faults.empty()) throw UsageError("--faults: not with --collective mpi, whose ranks mpirun starts");
  return true;
}

void print_opening(const train::Settings& settings, const cluster::Spec& spec, const std::string& run_dir, int threads,
                   const EmulatedNodes* nodes) {
  const Terminal terminal = Terminal::detect();
  const std::string how = spec.ps.empty() ? "all-reduce"
                                          : fmt::format("{}, {}", counted(spec.ps.size(), "parameter server"),
                                                        train::value_text(settings, "mode"));
  print("{} on {}: {} of {}{}, {}\n", terminal.bold(settings.model), terminal.bold(settings.dataset),
        counted(spec.members().size(), "worker"), counted(static_cast<uint64_t>(threads), "thread"),
        spec.evaluator.empty() ? "" : ", an evaluator", how);
  if (nodes != nullptr) print("on {}\n", nodes->text());
  print("kept in {}\n\n", run_dir);
  flush_out();
}

/// Where the run is, as a role is told: in a resumed one its settings lie there too.
std::string place(const train::Settings& settings, const std::string& run_dir) {
  return (settings.resume.empty() ? "--run-dir=" : "--resume=") + run_dir;
}

/// What is asked for, as far as it can be known to be wrong before anything is made.
void check(const train::Settings& settings, const cluster::Spec& spec) {
  train::Settings checked = settings;
  if (!settings.emulate.empty()) checked.insecure = true;  // nobody else is in that network
  train::check_cluster_settings(checked, spec);
  (void)train::resolve_threads(settings);  // what is too many is found here, once
  if (!settings.emulate.empty() && settings.cpu_quota > 0) {
    throw UsageError("--cpu-quota: not with --emulate, which gives nodes their cores: cores=0.5");
  }
}

cluster::LocalJob make_job(const train::Configuration& configuration, const train::Settings& settings,
                           const cluster::ClusterFile& cluster, Places& places, const std::string& run_dir) {
  cluster::LocalJob job;
  job.spec = cluster.spec;
  job.program = "/proc/self/exe";
  job.words = role_words(configuration);
  job.words.push_back(place(settings, run_dir));
  if (places.nodes() != nullptr) job.words.emplace_back("--insecure");
  job.cluster_file = run_dir + "/cluster.yaml";
  job.shares = cluster::share_cores(base::available_cores(), cluster.spec, static_cast<int>(settings.threads));
  if (places.limited()) job.shares.all_fit = false;  // who spins uses up its quota
  if (places.nodes() != nullptr && settings.threads == 0) {
    job.threads = threads_on(*places.nodes(), cluster);
    job.shares.worker_threads = job.threads.at(cluster.spec.chief_task().str());
  }
  job.wait_policy = train::value_text(settings, "wait-policy");
  return job;
}

}  // namespace

void find_data(const train::Configuration& configuration, const train::Settings& settings) {
  const data::LoadOptions options = train::data_options(settings, configuration.model(settings.model).image);
  if (settings.dataset == "images" || settings.dataset == "synthetic") return;
  (void)data::load(settings.dataset, options, fetch_display(Terminal::detect(), settings.quiet));
}

int run_local_cluster(const train::Configuration& configuration, const train::Settings& settings,
                      const Invocation& invocation) {
  find_data(configuration, settings);
  const cluster::ClusterFile cluster = make_cluster(configuration, settings);
  const cluster::Spec& spec = cluster.spec;
  check(settings, spec);
  cluster::check_open_files_of_job(spec, true);
  const bool mpi = wants_mpi(settings, spec);
  const std::vector<emulate::Fault> wanted = wanted_faults(settings, cluster);
  const cluster::CaughtSignals held;  // until the nodes are gone: whoever is ended while it makes them leaves nothing
  Places places(settings, cluster);
  Faults faults(wanted, spec.tasks().size(), places.nodes());
  train::RunDirectory directory = open_run(configuration, settings);
  const std::string& run_dir = directory.path();

  cluster::LocalJob job = make_job(configuration, settings, cluster, places, run_dir);
  job.name = invocation.argv[0];
  base::write_whole_file(job.cluster_file, cluster::cluster_yaml(spec));
  base::write_whole_file(run_dir + "/launch.yaml", launch_yaml(settings));
  if (settings.resume.empty()) base::write_whole_file(directory.config_file(), to_yaml(settings));
  places.write(run_dir, false);
  if (!settings.quiet) print_opening(settings, spec, run_dir, job.shares.worker_threads, places.nodes());

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
    for (cluster::RoleProcess& role : run.roles) places.seat(role);
  }
  run.also = [&](const RoleEvent& event) { faults.on_event(event); };
  if (!faults.empty()) run.faults = [&] { return faults.make_due(run_dir + "/faults.jsonl"); };
  run.collect = [&] {
    places.write(run_dir, true);
    return std::string();
  };
  run.discard = [&] { return directory.discard_if_unused(); };
  return run_cluster(run);
}

}  // namespace lockstep::tools
