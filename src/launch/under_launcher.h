// Runs a command for a launcher on another host, which speaks over standard input (an ssh connection). Lines "int",
// "term", "kill", "stop" and "continue" become signals; "tell TEXT" passes a line on to the command's standard input;
// empty lines show that the launcher lives. After "pause" the command is stopped and the launcher may be silent, until
// "resume". If the input ends or is silent for too long, or this process gets a signal to end, the command is killed
// with its children, so no process works on for a launcher that is gone.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

/// Begins the line that names processes which the command left behind.
inline constexpr std::string_view kLeftBehind = "lockstep: ended on this host: ";

/// Said before the launcher stops itself, as Ctrl-Z asks, and after it was continued.
inline constexpr std::string_view kPauseWord = "pause";
inline constexpr std::string_view kResumeWord = "resume";

struct UnderLauncherOptions {
  std::chrono::milliseconds silence{20'000};  ///< silence after which the launcher counts as gone
  std::chrono::milliseconds stopped{5000};    ///< time after which a stopped command is killed
  bool reap = false;  ///< end whatever the command leaves behind, also in other sessions, and name it
};

/// Runs the command to its end, with this process's output. Returns its exit code, or 128 + the signal that ended it,
/// which standard error names. Throws IoError if it cannot be started.
int run_under_launcher(const std::vector<std::string>& argv, const UnderLauncherOptions& options = {});

}  // namespace lockstep::launch
