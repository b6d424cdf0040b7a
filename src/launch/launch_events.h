// Events of a launcher for the command that called it and shows them. Called on the launcher's thread.
#pragma once

#include <string>
#include <vector>

#include "launch/supervisor.h"

namespace lockstep::launch {

/// The cluster that is about to start.
struct Opening {
  cluster::Spec spec;
  std::string run_dir;
  int threads = 1;    ///< per worker
  std::string nodes;  ///< the emulated nodes in words; empty: none
};

class LaunchEvents {
 public:
  virtual ~LaunchEvents() = default;

  virtual void on_opening(const Opening& /*opening*/) {}
  virtual void on_role(const RoleEvent& /*event*/) {}
  /// Scheduled faults that were just made, a line each.
  virtual void on_faults(const std::vector<std::string>& /*lines*/) {}
  /// All roles have ended; warnings and the result follow.
  virtual void on_roles_ended() {}
  virtual void on_warning(const std::string& /*text*/) {}
};

}  // namespace lockstep::launch
