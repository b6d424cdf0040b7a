// Limits on the CPU time and the memory of processes, by control groups (version 1 or 2). Needs root. Groups and limits
// end with the object. For one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep::emulate {

/// Throttling of a group, from cpu.stat.
struct Throttling {
  uint64_t periods = 0;
  uint64_t throttled_periods = 0;
  double throttled_seconds = 0;
};

struct GroupLimits {
  double cores = 1;           ///< cores that it may use: 0.25 is a quarter of one
  double memory_bytes = 0;    ///< 0: no limit
  bool accounted = false;     ///< also measures usage, where the system can
  std::string for_what = {};  ///< name of the limit in errors: "cpu-quota"
};

class ControlGroup {
 public:
  /// Makes a group. Its name gets this process's prefix (owner.h). Throws Error with the missing permission or feature
  /// if the system does not allow it.
  ControlGroup(const std::string& name, const GroupLimits& limits);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// Moves a process, with its future children, into the group.
  void add(pid_t process);
  void set_cores(double cores);
  [[nodiscard]] Throttling throttling() const;

  /// Files by which a process joins: it writes 0 to them.
  [[nodiscard]] std::vector<std::string> files() const;
  /// Folders with cpuacct.usage or cpu.stat, and memory.usage_in_bytes or memory.current; "" if there are none.
  [[nodiscard]] const std::string& usage_folder() const { return usage_; }
  [[nodiscard]] const std::string& memory_folder() const { return memory_; }

 private:
  void make(const std::string& name, const GroupLimits& limits);
  /// Makes a folder of that name there, unless this object made it already.
  std::string make_folder(const std::string& parent, const std::string& name);
  void remove();

  std::string error_prefix_;  ///< start of errors: "cpu-quota: "
  bool second_ = false;       ///< version 2
  std::string cpu_;
  std::string usage_;
  std::string memory_;
  std::vector<std::string> folders_;
  std::vector<base::FileHandle> held_;  ///< locks on the folders, which show others that this process lives
};

/// Removes groups left behind by dead processes.
void remove_leftover_groups();

}  // namespace lockstep::emulate
