// A limit on the CPU time of processes, by a control group (version 1 or 2). Needs root. The group and the limit end
// with the object. For one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace lockstep::emulate {

/// From cpu.stat: how often and how long the group was held back.
struct Throttling {
  uint64_t periods = 0;
  uint64_t throttled_periods = 0;
  double throttled_seconds = 0;
};

class CpuQuota {
 public:
  /// A group of that name that may use `cores` cores (0.25: a quarter). Throws Error that says what is missing where
  /// the system does not permit it.
  CpuQuota(const std::string& name, double cores);
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  /// Moves a process, with its future children, into the group.
  void add(pid_t process);
  [[nodiscard]] Throttling throttling() const;

 private:
  std::string folder_;
};

/// Removes groups that a process which died left behind.
void remove_leftover_quotas();

}  // namespace lockstep::emulate
