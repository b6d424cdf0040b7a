// Helpers for tests of child processes: the helper program's path, whether a process is alive, and waiting for a
// condition.
#pragma once

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "process/child_process.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

inline std::string helper_path() {
  const char* path = std::getenv("LOCKSTEP_ROLE_HELPER");  // NOLINT(concurrency-mt-unsafe)
  return path == nullptr ? "LOCKSTEP_ROLE_HELPER is not set" : path;
}

inline process::Command helper(const Words& words) {
  process::Command command;
  command.argv = {helper_path()};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return command;
}

/// Returns the state of a process as the kernel names it, such as 'S' or 'T'; 0 if there is none.
inline char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : '\0';
}

/// True if the process exists and is not a zombie.
inline bool alive(pid_t pid) { return state_of(pid) != '\0' && state_of(pid) != 'Z'; }
inline bool is_stopped(pid_t pid) { return state_of(pid) == 'T'; }

/// Waits for a condition, with a limit that only a broken program reaches.
template <class F>
bool eventually(F&& condition, std::chrono::seconds patience = std::chrono::seconds(100)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Returns the number in a line "child 123".
inline pid_t number_in(const std::string& line) { return std::stoi(line.substr(line.find(' ') + 1)); }

}  // namespace lockstep::testing
