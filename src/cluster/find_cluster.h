// Which cluster this process is part of, and as what: from --cluster and --task, TF_CONFIG, or the ranks of Slurm or
// MPI, in this order. The command line and TF_CONFIG are somebody's word, so both at once is an error; ranks come with
// any job of a scheduler and give way to either. A free function, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/launcher_environment.h"
#include "cluster/spec.h"

namespace lockstep::cluster {

/// The settings that have a say.
struct ClusterRequest {
  std::string cluster;  ///< --cluster FILE
  std::string task;     ///< --task ROLE:N
  std::string layout;
  int64_t workers = 0;
  int64_t ps = 0;  ///< of ranks, 0: they train by all-reduce; a file and TF_CONFIG know it themselves
  bool evaluator = false;
};

enum class Source : uint8_t { file, tf_config, ranks };

struct FoundCluster {
  Source source = Source::file;
  std::string from;  ///< "cluster.yaml", "TF_CONFIG", "Slurm": for the log and for errors
  Spec spec;
  Task task;
  bool by_rank = false;  ///< each rank of a launcher is one task
};

/// Nothing: no cluster is given from outside; training is in this process, or --workers starts processes here. Throws
/// UsageError for what contradicts itself.
std::optional<FoundCluster> find_cluster(const ClusterRequest& request, const Environment& environment);

/// What carries an all-reduce (--collective).
enum class Engine : uint8_t { automatic, in_process, mpi, gloo };
/// The engine of an all-reduce in this cluster, mpi or gloo. Automatic is mpi for the ranks of Open MPI and PMIx, which
/// an evaluator cannot be one of, and else gloo. Throws UsageError for one that cannot be.
Engine choose_engine(Engine wanted, const FoundCluster& found, const Environment& environment);

}  // namespace lockstep::cluster
