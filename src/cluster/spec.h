// A cluster: the address of each role. The same structure for flags (local processes), a YAML file, TF_CONFIG, Slurm or
// an MPI launcher. A plain value that its reader has checked (`find_problem`); any thread.
//
// An address is "host:port" (base/address.h), or "" if unknown. In the sparse form of TF_CONFIG a worker knows only the
// ps and itself; MPI ranks have no addresses. Such a spec is `partial`.
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
/// Returns the role of that name; "master" is an older name for the chief.
std::optional<Role> find_role(std::string_view name);
/// Returns a hint for an unknown role: " (did you mean 'worker'?)".
std::string role_hint(std::string_view name);

/// One process of the cluster: "worker:1". The folder of its files is "worker-1".
struct Task {
  Role role = Role::worker;
  int index = 0;

  [[nodiscard]] std::string str() const;
  [[nodiscard]] std::string folder() const;
  [[nodiscard]] bool trains() const { return role == Role::chief || role == Role::worker; }
  friend bool operator==(const Task&, const Task&) = default;
};
/// Parses a task. Throws UsageError: 'wroker:1' is not a task (did you mean 'worker:1'?); ...
Task parse_task(std::string_view text);

struct Spec {
  std::vector<std::string> chief;  ///< "host:port"; empty: worker:0 is the chief
  std::vector<std::string> workers;
  std::vector<std::string> ps;
  std::vector<std::string> evaluator;
  /// More workers may exist than are listed here; ps:0 learns their number as they join.
  bool partial = false;

  /// Returns the tasks that train, the chief first. Their positions are the worker numbers of the protocol.
  [[nodiscard]] std::vector<Task> members() const;
  /// Returns a task's position in members(); -1 for a ps or the evaluator. Unknown in a partial spec: ask ps:0 by task.
  [[nodiscard]] int member_index(const Task& task) const;
  [[nodiscard]] Task chief_task() const;
  /// Returns all tasks: ps, members, evaluator.
  [[nodiscard]] std::vector<Task> tasks() const;
  [[nodiscard]] bool contains(const Task& task) const;
  /// Returns "" if the address is unknown or the task does not exist.
  [[nodiscard]] const std::string& address(const Task& task) const;
  /// True if all known addresses can be reached only from this machine.
  [[nodiscard]] bool loopback_only() const;

  [[nodiscard]] const std::vector<std::string>& of(Role role) const;
  [[nodiscard]] std::vector<std::string>& of(Role role);
  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Returns the address on which a process with this address listens: the same, unless it is a name other than
/// localhost. Such a name may belong to another address (a service) or be known only later, so the process listens on
/// that port of all interfaces, "[::]:4000".
std::string listen_address(std::string_view address);

/// A problem of a spec. The caller knows how to name the place.
struct Problem {
  std::optional<Task> task;  ///< task of the wrong entry; absent: the whole spec
  std::string text;
};
/// Returns the first problem: an invalid address, a duplicate address, two chiefs or evaluators, no member that trains.
std::optional<Problem> find_problem(const Spec& spec);

}  // namespace lockstep::cluster
