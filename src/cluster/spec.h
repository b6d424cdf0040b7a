// The cluster: which role listens where. The same structure whether it comes from flags (local processes), a YAML file,
// TF_CONFIG, Slurm or an MPI launcher. A plain value that its reader has checked (`find_problem`); any thread.
//
// An address is "host:port" (base/address.h). Where the reader was not told one it is "": in the sparse form
// of TF_CONFIG a worker knows the ps and itself, and of MPI ranks nobody says where they run. Such a spec is `partial`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cluster {

/// Most tasks of one role: a wrong index must not become a huge list.
inline constexpr int kMostTasks = 10000;

enum class Role : uint8_t { chief, worker, ps, evaluator };
std::string_view name(Role role);
/// The role of that name, also by its older name "master" for the chief.
std::optional<Role> find_role(std::string_view name);
/// " (did you mean 'worker'?)" for a name that is no role.
std::string role_hint(std::string_view name);

/// One process of the cluster. "worker:1"; the folder of its files is "worker-1".
struct Task {
  Role role = Role::worker;
  int index = 0;

  [[nodiscard]] std::string str() const;
  [[nodiscard]] std::string folder() const;
  [[nodiscard]] bool trains() const { return role == Role::chief || role == Role::worker; }
  friend bool operator==(const Task&, const Task&) = default;
};
/// Throws UsageError: 'wroker:1' is not a task (did you mean 'worker:1'?); chief:0, worker:N, ps:N or evaluator:0 is.
Task parse_task(std::string_view text);

struct Spec {
  std::vector<std::string> chief;  ///< "host:port"; empty: worker:0 is the chief
  std::vector<std::string> workers;
  std::vector<std::string> ps;
  std::vector<std::string> evaluator;
  /// There may be more workers than are listed here; how many, ps:0 learns as they join.
  bool partial = false;

  /// Those that train, the chief first: their places are the worker numbers of the protocol.
  [[nodiscard]] std::vector<Task> members() const;
  /// The place of a task among members(); -1 for a ps or the evaluator. A partial spec cannot say: ask ps:0 by task.
  [[nodiscard]] int member_index(const Task& task) const;
  [[nodiscard]] Task chief_task() const;
  /// All tasks: ps, members, evaluator.
  [[nodiscard]] std::vector<Task> tasks() const;
  [[nodiscard]] bool contains(const Task& task) const;
  /// "" where it is not known or the task is not there.
  [[nodiscard]] const std::string& address(const Task& task) const;
  /// Whether all known addresses are of this machine alone.
  [[nodiscard]] bool loopback_only() const;

  [[nodiscard]] const std::vector<std::string>& of(Role role) const;
  [[nodiscard]] std::vector<std::string>& of(Role role);
  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Where the process of that address listens: there. But a name other than localhost may stand for an address that is
/// not this machine's (a service), or be known only later: for it, on that port of all interfaces, "[::]:4000".
std::string listen_address(std::string_view address);

/// What is wrong with a spec, for its reader, who knows how to name the place.
struct Problem {
  std::optional<Task> task;  ///< whose entry it is; absent: the whole's
  std::string text;
};
/// The first of: an address that is none, one that is there twice, two chiefs or evaluators, nobody who trains.
std::optional<Problem> find_problem(const Spec& spec);

}  // namespace lockstep::cluster
