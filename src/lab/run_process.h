// One process of a run, followed from its start to its end: its output goes to a log, signals to this program are
// passed on (Ctrl-Z stops both), and it is killed if it does not end. Internal to the room; for the thread that lives
// as long as the program.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launch/role_failure.h"
#include "process/child_process.h"

namespace lockstep::lab {

struct Followed {
  std::optional<process::Ending> ending;
  std::optional<launch::RoleFailure> failure;  ///< failure that the run itself reported
  std::string last_error;                      ///< last line on standard error
  int signal = 0;                              ///< signal that asked the lab to end
  double stopped_seconds = 0;                  ///< for which Ctrl-Z stopped the lab and the run
  bool log_failed = false;                     ///< the log could not be written
};

/// Returns the text of the failure. A crashed program, or an older one on another host, reports no fields.
std::string why_failed(const Followed& run);

/// Reads a signal to this program; 0 if there is none.
int read_signal(int signals);

/// Stops this program with its child, if it has one, as Ctrl-Z asks; returns when it is continued, and so is the child.
void stop_with(const process::Child* child);

/// `log`: file for its output; empty: none. `failure_file`: where the program reports its failure. `tick` is called
/// several times a second.
Followed follow(const process::Command& command, const std::string& log, const std::string& failure_file, int signals,
                const std::function<void()>& tick);

}  // namespace lockstep::lab
