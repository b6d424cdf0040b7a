// Processes that a program leaves behind: children of children that outlive their parents, also those that made a
// session or a process group of their own. While a Subreaper lives, the system gives them to this process, so none can
// leave its tree. For the thread that starts and reaps this process's children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::process {

class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
};

struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;    ///< as the system shows it: "python3"
  bool ended = false;  ///< waits to be reaped
};

/// Returns the children of this process, their children and so on.
std::vector<Descendant> descendants();

/// Kills and reaps all descendants, again until none is left or `patience` has passed. Call it only while no Child is
/// running. `except`: a child that stays. Returns those that still ran: "python3 (921)".
std::vector<std::string> end_descendants(std::chrono::milliseconds patience, pid_t except = 0);

}  // namespace lockstep::process
