// The cluster: which role listens where. The same structure whether it comes from flags (local processes), a YAML file,
// TF_CONFIG, Slurm or an MPI launcher. A plain value, checked when made; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cluster {

enum class Role : uint8_t { chief, worker, ps, evaluator };
std::string_view name(Role role);

/// One process of the cluster. "worker:1"; the folder of its files is "worker-1".
struct Task {
  Role role = Role::worker;
  int index = 0;

  [[nodiscard]] std::string str() const;
  [[nodiscard]] std::string folder() const;
  friend bool operator==(const Task&, const Task&) = default;
};
/// Throws UsageError: 'wroker:1' is not a task; chief:0, worker:N, ps:N or evaluator:0 is.
Task parse_task(std::string_view text);

struct Spec {
  std::vector<std::string> chief;  ///< "host:port"; empty: worker:0 is the chief
  std::vector<std::string> workers;
  std::vector<std::string> ps;
  std::vector<std::string> evaluator;

  /// Those that train, the chief first: their places are the worker numbers of the protocol.
  [[nodiscard]] std::vector<Task> members() const;
  /// The place of a task among members(); -1 for a ps or the evaluator.
  [[nodiscard]] int member_index(const Task& task) const;
  [[nodiscard]] Task chief_task() const;
  /// All tasks: ps, members, evaluator.
  [[nodiscard]] std::vector<Task> tasks() const;
  [[nodiscard]] const std::string& address(const Task& task) const;
  [[nodiscard]] bool loopback_only() const;
};

}  // namespace lockstep::cluster
