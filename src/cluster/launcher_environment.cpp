#include "cluster/launcher_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <numeric>

#include "base/address.h"
#include "base/hash.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

// Blocks of ports below those of outgoing connections, chosen so that jobs on one machine rarely share one.
constexpr int kPortBlocks = 750;
constexpr int kPortsPerBlock = 16;
constexpr int kBlocksBegin = 20000;

/// Reads variables: the first of several names that is set and not empty.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] std::string first(std::initializer_list<const char*> names, std::string* which = nullptr) const {
    for (const char* name : names) {
      const auto found = environment_.find(name);
      if (found == environment_.end() || found->second.empty()) continue;
      if (which != nullptr) *which = name;
      return found->second;
    }
    return "";
  }

  [[nodiscard]] std::optional<int> number(std::initializer_list<const char*> names, int least, int most) const {
    std::string which;
    const std::string text = first(names, &which);
    if (text.empty()) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
    throw UsageError(
        fmt::format("{}: '{}' is not a whole number from {} to {}", which, base::shown(text), least, most));
  }

 private:
  const Environment& environment_;
};

/// Reads rank and size from one launcher's variables. Returns nothing without a rank, or for a single process.
std::optional<Ranks> ranks_from(const Variables& variables, const char* launcher, const char* rank_name,
                                std::initializer_list<const char*> size_names) {
  const std::optional<int> rank = variables.number({rank_name}, 0, 2 * kMostTasks - 1);
  if (!rank) return std::nullopt;
  const std::optional<int> size = variables.number(size_names, 1, 2 * kMostTasks);
  if (!size) {
    throw UsageError(fmt::format("{}: is set, and {}, the number of ranks, is not", rank_name, *size_names.begin()));
  }
  if (*rank >= *size) throw UsageError(fmt::format("{}: '{}' is out of range for {} ranks", rank_name, *rank, *size));
  if (*size == 1) return std::nullopt;
  return Ranks{launcher, *rank, *size, {}, 0};
}

/// Returns a port that is the same in all processes of a job, and different for most pairs of jobs.
int port_of_job(const std::string& job) {
  return kBlocksBegin + static_cast<int>(base::hashed32(job) % kPortBlocks) * kPortsPerBlock;
}

int first_port(const Variables& variables, std::initializer_list<const char*> job_names) {
  if (const auto port = variables.number({"LOCKSTEP_PORT"}, 1, 65535)) return *port;
  std::string job;
  for (const char* name : job_names) job += variables.first({name}) + ".";
  return port_of_job(job);
}

/// Returns the node of each rank: nodes take blocks of `plane` ranks in turn, until each has its count.
std::vector<int> deal_ranks(const std::vector<int>& counts, int plane) {
  std::vector<int> left = counts;
  std::vector<int> nodes;
  const int size = std::accumulate(left.begin(), left.end(), 0);
  while (static_cast<int>(nodes.size()) < size) {
    for (size_t node = 0; node < left.size(); ++node) {
      const int here = std::min(left[node], plane);
      nodes.insert(nodes.end(), static_cast<size_t>(here), static_cast<int>(node));
      left[node] -= here;
    }
  }
  return nodes;
}

/// Returns the ranks in a row that a node gets in each turn.
int plane_of(const Variables& variables) {
  const std::string text = variables.first({"SLURM_DISTRIBUTION"});
  const std::string nodes = text.substr(0, text.find_first_of(":,"));
  if (nodes.empty() || nodes == "block" || nodes == "*" || nodes == "unknown") return kMostTasks;
  if (nodes == "cyclic") return 1;
  if (nodes == "plane") return variables.number({"SLURM_DIST_PLANESIZE"}, 1, kMostTasks).value_or(kMostTasks);
  throw UsageError(
      fmt::format("SLURM_DISTRIBUTION: '{}': the placement of ranks is unknown; block, cyclic and plane "
                  "are known; with another give --cluster FILE",
                  base::shown(text)));
}

template <class Expand>
auto expanded(const std::string& which, const std::string& text, Expand expand) {
  try {
    return expand(text);
  } catch (const UsageError& error) {
    throw UsageError(which + ": " + error.what());
  }
}

std::vector<std::string> slurm_hosts(const Variables& variables, const Ranks& ranks) {
  std::string which;
  std::string text = variables.first({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}, &which);
  if (text.empty()) return {};
  const std::vector<std::string> nodes = expanded(which, text, expand_node_list);
  text = variables.first({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}, &which);
  std::vector<int> counts(nodes.size(), 1);
  if (nodes.size() == 1) {
    counts = {ranks.size};
  } else if (!text.empty()) {
    counts = expanded(which, text, expand_task_counts);
  }
  const int tasks = std::accumulate(counts.begin(), counts.end(), 0);
  if (counts.size() != nodes.size() || tasks != ranks.size) {
    throw UsageError(fmt::format("{}: '{}' places {} tasks on {} nodes; Slurm's node list has {} nodes for {} ranks",
                                 which, base::shown(text), tasks, counts.size(), nodes.size(), ranks.size));
  }
  std::vector<std::string> hosts;
  const std::vector<int> dealt = deal_ranks(counts, plane_of(variables));
  for (const int node : dealt) hosts.push_back(nodes[static_cast<size_t>(node)]);
  // Slurm's own node for this rank checks the rule.
  const std::optional<int> here = variables.number({"SLURM_NODEID"}, 0, kMostTasks);
  if (here && *here != dealt[static_cast<size_t>(ranks.rank)]) {
    throw UsageError(
        fmt::format("SLURM_NODEID: rank {} runs on node {} of {}, and by its distribution it would be node "
                    "{}; give --cluster",
                    ranks.rank, *here, nodes.size(), dealt[static_cast<size_t>(ranks.rank)]));
  }
  return hosts;
}

std::optional<Ranks> slurm_ranks(const Variables& variables) {
  const bool step = !variables.first({"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS"}).empty();
  // The script of a batch job has a rank, too, but srun did not start it.
  if (!step && variables.first({"ENVIRONMENT"}) == "BATCH") return std::nullopt;
  std::optional<Ranks> ranks =
      ranks_from(variables, "Slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  if (!ranks) return ranks;
  ranks->first_port = first_port(variables, {"SLURM_JOB_ID", "SLURM_STEP_ID"});
  ranks->hosts = slurm_hosts(variables, *ranks);
  return ranks;
}

std::optional<Ranks> mpi_ranks(const Variables& variables) {
  std::optional<Ranks> ranks =
      ranks_from(variables, "Open MPI", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"});
  if (!ranks) ranks = ranks_from(variables, "PMI", "PMI_RANK", {"PMI_SIZE"});
  if (!ranks) return ranks;
  ranks->first_port = first_port(variables, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"});
  const auto here = variables.number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 1, 2 * kMostTasks);
  if (here == ranks->size) ranks->hosts.assign(static_cast<size_t>(ranks->size), "127.0.0.1");
  return ranks;
}

/// Returns the addresses of ranks [begin, end), after all earlier ones have theirs.
std::vector<std::string> addresses(const Ranks& ranks, int begin, int end, std::map<std::string, int>& used) {
  std::vector<std::string> list(static_cast<size_t>(end - begin));
  if (ranks.hosts.empty()) return list;
  const bool one_machine = std::all_of(ranks.hosts.begin(), ranks.hosts.end(),
                                       [&](const std::string& host) { return host == ranks.hosts[0]; });
  for (int rank = begin; rank < end; ++rank) {
    const std::string& host = ranks.hosts[static_cast<size_t>(rank)];
    list[static_cast<size_t>(rank - begin)] =
        base::join_address(one_machine ? "127.0.0.1" : host, ranks.first_port + used[host]++);
  }
  return list;
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::optional<Ranks> find_ranks(const Environment& environment) {
  const Variables variables(environment);
  // mpirun runs inside a Slurm job: Slurm's variables describe mpirun's daemons.
  if (!variables.first({"OMPI_COMM_WORLD_RANK"}).empty()) return mpi_ranks(variables);
  const std::string pmi = variables.first({"PMI_RANK"});
  const bool of_slurm = pmi.empty() || pmi == variables.first({"SLURM_PROCID"});
  if (of_slurm && !variables.first({"SLURM_PROCID"}).empty()) return slurm_ranks(variables);
  return mpi_ranks(variables);
}

Spec spec_of_ranks(const Ranks& ranks, int ps, bool evaluator) {
  const int workers = ranks.size - ps - (evaluator ? 1 : 0);
  if (workers < 1) {
    throw UsageError(fmt::format("{}: {} ranks are too few for {} ps{} and at least one worker", ranks.launcher,
                                 ranks.size, ps, evaluator ? ", an evaluator" : ""));
  }
  if (ps > 0 && ranks.hosts.empty()) {
    throw UsageError(
        fmt::format("{}: does not say where its ranks run, and with ps the addresses are needed: give "
                    "--cluster FILE (rank r is then the r-th of its ps, chief, workers, evaluator)",
                    ranks.launcher));
  }
  Spec spec;
  std::map<std::string, int> used;
  spec.ps = addresses(ranks, 0, ps, used);
  spec.workers = addresses(ranks, ps, ps + workers, used);
  spec.evaluator = addresses(ranks, ps + workers, ranks.size, used);
  if (const std::optional<Problem> problem = find_problem(spec)) {
    throw UsageError(fmt::format("{}: {}", ranks.launcher, problem->text));
  }
  return spec;
}

}  // namespace lockstep::cluster
