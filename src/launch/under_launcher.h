// The far end of a launcher: runs a command beside a launcher on another host, whose word comes over standard input (an
// ssh connection). Lines "int", "term" and "kill" become signals, empty ones say that the launcher lives. When the
// input ends, is silent too long or this process is told to go, the command is killed with its children: nobody works
// on for a launcher that is gone.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::launch {

struct UnderLauncherOptions {
  std::chrono::milliseconds silence{20'000};  ///< without a word, the launcher is taken for gone
  std::chrono::milliseconds stopped{5000};    ///< a command that is stopped this long is killed
};

/// Runs the command to its end, with this process's output. Its exit code, or 128 + the signal that ended it, which is
/// then also said on standard error. Throws IoError where it cannot be started.
int run_under_launcher(const std::vector<std::string>& argv, const UnderLauncherOptions& options = {});

}  // namespace lockstep::launch
