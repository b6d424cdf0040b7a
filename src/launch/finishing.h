// When the training of a job has ended, and how long those who are left may take to end. What a supervisor knows of
// each role, and free functions over that; for its thread.
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
  std::unique_ptr<process::Child> child = nullptr;  ///< while it runs
  bool done = false;                                ///< ended well
  int restarts = 0;
  int quick_deaths = 0;
  Moment started = {};
  std::optional<Moment> start_at = {};
  std::optional<Moment> stopped_since = {};
  std::optional<Moment> deadline = {};  ///< for its end
  int asked = 0;                        ///< the signal it was last asked to end with
  std::string error = {};               ///< the last line of standard error, not told yet
  std::string told = {};                ///< the last one that was, of this life
  std::string failure = {};             ///< what it said when it last failed by itself, and how often in a row
  int same_failures = 0;
  std::optional<RoleFailure> reported = {};  ///< why it fails, told as fields in this life
  RepeatedFailures::Seen seen = {};          ///< how often the last such failure has come
  Moment error_at = {};
  bool heard = false;        ///< of a remote one: it has said something
  bool unreachable = false;  ///< its host was, when it last died
};

/// Whether it has ended: the chief has ended well, who leaves last of those that train; without one, all have. Where
/// some are enough, one is. A server ends well only after the chief has said that all is written.
bool trained(const std::vector<RoleState>& roles, const SupervisorOptions& options);
/// For a role, from then on.
SupervisorOptions::Time time_to_finish(const RoleState& role, const std::vector<RoleState>& roles,
                                       const SupervisorOptions& options);
/// Once only servers are left, they have nobody to wait for.
void hurry_servers(std::vector<RoleState>& roles, const SupervisorOptions& options);

}  // namespace lockstep::launch
