#include "launch/finishing.h"

#include <algorithm>

namespace lockstep::launch {
namespace {

/// Returns the leader of the run: the chief, or worker:0 if none is named.
const RoleState* find_chief(const std::vector<RoleState>& roles) {
  const RoleState* found = nullptr;
  for (const RoleState& role : roles) {
    if (role.process.task.role == cluster::Role::chief) return &role;
    if (role.process.task == cluster::Task{cluster::Role::worker, 0}) found = &role;
  }
  return found;
}

}  // namespace

bool trained(const std::vector<RoleState>& roles, const SupervisorOptions& options) {
  const auto server_done = [](const RoleState& role) {
    return role.process.task.role == cluster::Role::ps && role.done;
  };
  if (std::any_of(roles.begin(), roles.end(), server_done)) return true;
  const auto member_done = [](const RoleState& role) { return role.process.task.trains() && role.done; };
  if (options.enough_members > 0) return std::any_of(roles.begin(), roles.end(), member_done);
  if (const RoleState* const last = find_chief(roles)) return last->done;
  const auto is_done = [](const RoleState& role) { return !role.process.task.trains() || role.done; };
  return std::any_of(roles.begin(), roles.end(), member_done) && std::all_of(roles.begin(), roles.end(), is_done);
}

SupervisorOptions::Time time_to_finish(const RoleState& role, const std::vector<RoleState>& roles,
                                       const SupervisorOptions& options) {
  if (role.process.task.role == cluster::Role::evaluator) return options.finish_evaluator;
  if (!role.process.task.trains()) return options.finish;
  // In an all-reduce the last leader serves the evaluator.
  const bool evaluated = std::any_of(roles.begin(), roles.end(), [](const RoleState& other) {
    return other.process.task.role == cluster::Role::evaluator && other.child;
  });
  return evaluated && options.enough_members > 0 ? options.finish : options.finish_member;
}

void hurry_servers(std::vector<RoleState>& roles, const SupervisorOptions& options) {
  const auto served = [](const RoleState& role) { return role.process.task.role != cluster::Role::ps && role.child; };
  if (std::any_of(roles.begin(), roles.end(), served)) return;
  const Moment until = Clock::now() + options.finish_last;
  for (RoleState& role : roles) {
    if (role.child && role.end_signal == 0 && role.deadline) role.deadline = std::min(*role.deadline, until);
  }
}

}  // namespace lockstep::launch
