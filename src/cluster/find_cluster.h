// Finds this process's cluster and task: from --cluster and --task, TF_CONFIG, or the ranks of Slurm or MPI, in this
// order. The command line and TF_CONFIG are set on purpose, so both at once is an error. Ranks exist in any job of a
// scheduler and give way to either. A free function, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/launcher_environment.h"
#include "cluster/spec.h"

namespace lockstep::cluster {

/// The settings that say which cluster this process belongs to.
struct ClusterRequest {
  std::string cluster;  ///< --cluster FILE
  std::string task;     ///< --task ROLE:N
  std::string layout;
  int64_t workers = 0;
  int64_t ps = 0;  ///< with ranks, 0 means all-reduce; ignored with a file or TF_CONFIG
  bool evaluator = false;
};

enum class Source : uint8_t { file, tf_config, ranks };

struct FoundCluster {
  Source source = Source::file;
  std::string from;  ///< "cluster.yaml", "TF_CONFIG", "Slurm": for logs and errors
  Spec spec;
  Task task;
  bool by_rank = false;  ///< each rank of a launcher is one task
};

/// Returns nothing if no cluster is given from outside: training is in this process, or --workers starts processes
/// here. Throws UsageError for contradictory settings.
std::optional<FoundCluster> find_cluster(const ClusterRequest& request, const Environment& environment);

/// The transport of an all-reduce (--collective).
enum class Engine : uint8_t { automatic, in_process, mpi, gloo };
/// Returns the engine of an all-reduce in this cluster, mpi or gloo. Automatic means mpi for ranks of Open MPI and PMIx
/// without an evaluator (which cannot be a rank), else gloo. Throws UsageError for an impossible choice.
Engine choose_engine(Engine wanted, const FoundCluster& found, const Environment& environment);

}  // namespace lockstep::cluster
