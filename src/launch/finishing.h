// The end of a job: whether its training has ended, and how long the remaining roles may take to end. Holds the
// supervisor's state of each role, and free functions over it; for the supervisor's thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/repeated_failures.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

struct RoleState {
  RoleProcess process;
  std::unique_ptr<process::Child> child = nullptr;  ///< set while it runs
  bool done = false;                                ///< ended with success
  int restarts = 0;
  int quick_deaths = 0;
  Moment started = {};
  std::optional<Moment> start_at = {};
  std::optional<Moment> stopped_since = {};
  std::optional<Moment> deadline = {};  ///< time by which it must end
  int end_signal = 0;                   ///< signal that it was last asked to end with
  std::string error = {};               ///< last line of standard error, not reported yet
  std::string last_line = {};           ///< last line reported in this life
  std::string failure = {};             ///< text of its last failure of its own, and how often in a row
  int same_failures = 0;
  std::optional<RoleFailure> reported = {};  ///< cause reported as fields in this life
  RepeatedFailures::Seen seen = {};          ///< how often that failure has occurred
  Moment error_at = {};
  bool heard = false;        ///< a remote role has written something
  bool unreachable = false;  ///< its host was unreachable when it last died
};

/// True if training has ended: the chief, which leaves last of the members, has ended with success; without a chief,
/// all members have. If some members are enough, one suffices. A server ends with success only after the chief has said
/// that everything is written.
bool trained(const std::vector<RoleState>& roles, const SupervisorOptions& options);
/// Returns how long a role may take to end from then on.
SupervisorOptions::Time time_to_finish(const RoleState& role, const std::vector<RoleState>& roles,
                                       const SupervisorOptions& options);
/// Shortens the servers' deadline once only servers are left: they wait for no one.
void hurry_servers(std::vector<RoleState>& roles, const SupervisorOptions& options);

}  // namespace lockstep::launch
