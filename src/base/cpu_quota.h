// The CPU time that control groups allow this process: `docker --cpus`, limits of Kubernetes, `CPUQuota` of systemd.
// Free functions; any thread.
#pragma once

#include <optional>
#include <string>

namespace lockstep::base {

/// Returns how many cores' time the control group of a process allows; nothing without a limit. `membership` is the
/// text of /proc/self/cgroup, `root` the folder /sys/fs/cgroup. The smallest limit of the group and those above counts.
std::optional<double> allowed_cores(const std::string& membership, const std::string& root);
/// The same for this process.
std::optional<double> own_allowed_cores();

/// Returns the threads that may compute all the time: as many as cores, but no more than the whole cores of the quota.
/// Threads beyond it would all wait for the one that is held back. At least 1.
int useful_threads(int cores, std::optional<double> quota);
/// The same for this process.
int useful_threads();

}  // namespace lockstep::base
