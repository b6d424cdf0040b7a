#include "cluster/find_cluster.h"

#include <fmt/format.h>

#include "base/yaml_tree.h"
#include "cluster/cluster_file.h"
#include "cluster/tf_config.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

/// Returns "ps:0, worker:0 to worker:2".
std::string tasks_text(const Spec& spec) {
  std::string text;
  for (const Role role : {Role::ps, Role::chief, Role::worker, Role::evaluator}) {
    const size_t count = spec.of(role).size();
    if (count == 0) continue;
    text += fmt::format("{}{}:0", text.empty() ? "" : ", ", name(role));
    if (count > 1) text += fmt::format(" to {}:{}", name(role), count - 1);
  }
  return text;
}

Task task_of_flag(const std::string& text) {
  try {
    return parse_task(text);
  } catch (const UsageError& error) {
    throw UsageError(std::string("--task: ") + error.what());
  }
}

void require_task(const FoundCluster& found) {
  if (found.spec.contains(found.task)) return;
  throw UsageError(
      fmt::format("--task: {} is not in {}, which has {}", found.task.str(), found.from, tasks_text(found.spec)));
}

void refuse_layout(const std::string& layout, const std::string& from) {
  if (layout.empty()) return;
  throw UsageError(
      fmt::format("--layout: '{}' starts processes on this machine, but {} already defines the cluster; "
                  "leave one out",
                  base::shown(layout), from));
}

void refuse_local_settings(const ClusterRequest& request, const std::string& from) {
  refuse_layout(request.layout, from);
  if (request.workers == 0) return;
  throw UsageError(
      fmt::format("--workers: {} starts processes on this machine, but {} already defines the cluster; "
                  "leave one out",
                  request.workers, from));
}

FoundCluster from_file(const ClusterRequest& request, const Environment& environment) {
  refuse_local_settings(request, request.cluster);
  FoundCluster found{Source::file, request.cluster, load_cluster_file(request.cluster).spec, {}, false};
  if (!request.task.empty()) {
    found.task = task_of_flag(request.task);
    require_task(found);
    return found;
  }
  const std::optional<Ranks> ranks = find_ranks(environment);
  const std::vector<Task> tasks = found.spec.tasks();
  if (!ranks) {
    throw UsageError(fmt::format("--cluster: {} needs --task as well: which of {} is this process?", request.cluster,
                                 tasks_text(found.spec)));
  }
  if (static_cast<size_t>(ranks->size) != tasks.size()) {
    throw UsageError(fmt::format("--cluster: {} has {} tasks and {} started {} ranks; each rank is one task",
                                 request.cluster, tasks.size(), ranks->launcher, ranks->size));
  }
  found.task = tasks[static_cast<size_t>(ranks->rank)];
  found.from += " and " + ranks->launcher;
  found.by_rank = true;
  return found;
}

FoundCluster from_tf_config(const ClusterRequest& request, TfConfig config) {
  refuse_local_settings(request, "TF_CONFIG");
  FoundCluster found{Source::tf_config, "TF_CONFIG", std::move(config.spec), {}, false};
  if (request.task.empty() && !config.task) {
    throw UsageError(
        fmt::format("TF_CONFIG: task: is missing; it says which of {} this process is, as in "
                    R"({{"type": "worker", "index": 0}})",
                    tasks_text(found.spec)));
  }
  found.task = request.task.empty() ? *config.task : task_of_flag(request.task);
  if (config.task && *config.task != found.task) {
    throw UsageError(fmt::format("--task: {} and TF_CONFIG with {} contradict each other; leave one out",
                                 found.task.str(), config.task->str()));
  }
  if (found.task.role == Role::evaluator && found.spec.evaluator.empty()) found.spec.evaluator.emplace_back();
  require_task(found);
  return found;
}

FoundCluster from_ranks(const ClusterRequest& request, const Ranks& ranks) {
  refuse_layout(request.layout, ranks.launcher);
  const int64_t wanted = request.workers + request.ps + (request.evaluator ? 1 : 0);
  if (request.workers > 0 && wanted != ranks.size) {
    const std::string servers = request.ps > 0 ? fmt::format(" with {} ps", request.ps) : "";
    throw UsageError(fmt::format("--workers: {}{}{} are {} processes, and {} started {}", request.workers, servers,
                                 request.evaluator ? " and an evaluator" : "", wanted, ranks.launcher, ranks.size));
  }
  FoundCluster found{Source::ranks, ranks.launcher, {}, {}, true};
  found.spec = spec_of_ranks(ranks, static_cast<int>(request.ps), request.evaluator);
  found.task = found.spec.tasks()[static_cast<size_t>(ranks.rank)];
  return found;
}

bool is_set(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

void require_addresses(const FoundCluster& found) {
  for (const Task& task : found.spec.members()) {
    if (!found.spec.address(task).empty()) continue;
    throw UsageError(
        fmt::format("--collective: gloo needs the address of every worker, and {} does not say where they "
                    "run: give --cluster FILE, or leave it to mpi",
                    found.from));
  }
}

}  // namespace

Engine choose_engine(Engine wanted, const FoundCluster& found, const Environment& environment) {
  const bool ranks = found.by_rank && (is_set(environment, "OMPI_COMM_WORLD_RANK") || is_set(environment, "PMIX_RANK"));
  const bool evaluator = !found.spec.evaluator.empty();
  if (wanted == Engine::mpi && !ranks) {
    throw UsageError(
        "--collective: mpi is for the ranks of mpirun, or of srun --mpi=pmix, and this process is not one");
  }
  if (wanted == Engine::mpi && evaluator) {
    throw UsageError("--collective: mpi has no place for an evaluator: all its ranks train; use gloo, or no evaluator");
  }
  if (wanted == Engine::in_process) {
    throw UsageError(
        "--collective: inprocess is for --replicas, which are in one process; a cluster takes gloo or mpi");
  }
  if (wanted == Engine::mpi || (wanted == Engine::automatic && ranks && !evaluator)) return Engine::mpi;
  require_addresses(found);
  return Engine::gloo;
}

std::optional<FoundCluster> find_cluster(const ClusterRequest& request, const Environment& environment) {
  const auto variable = environment.find("TF_CONFIG");
  std::optional<TfConfig> config;
  if (variable != environment.end()) config = parse_tf_config(variable->second);
  if (!request.cluster.empty()) {
    if (config) {
      throw UsageError(fmt::format(
          "--cluster: {} is given and TF_CONFIG is set; unset TF_CONFIG or leave out --cluster", request.cluster));
    }
    return from_file(request, environment);
  }
  if (config) return from_tf_config(request, std::move(*config));
  if (!request.task.empty()) {
    throw UsageError(
        fmt::format("--task: {} needs --cluster FILE, or a cluster in TF_CONFIG", task_of_flag(request.task).str()));
  }
  if (const std::optional<Ranks> ranks = find_ranks(environment)) return from_ranks(request, *ranks);
  return std::nullopt;
}

}  // namespace lockstep::cluster
