// The hardware of this machine that Lockstep uses, and what it leaves unused, in words for `lockstep info`. Free
// functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::tools {

/// Returns how many cores' time the control group of a process allows; nothing without a limit. `membership` is the
/// text of /proc/self/cgroup, `root` the folder /sys/fs/cgroup. The smallest limit of the group and those above counts.
std::optional<double> allowed_cores(const std::string& membership, const std::string& root);

/// "2 of 16 cores, 2 threads" and the quota, if it is smaller.
std::string cores_text(int usable, int present, int threads, std::optional<double> quota);
/// What --precision bf16 would use.
std::string bf16_text(bool avx512_bf16, bool amx);
/// The GPUs, and whether one of the backends uses them.
std::string gpu_text(const std::vector<std::string>& gpus, const std::vector<std::string>& backends);

std::optional<double> own_allowed_cores();
/// Models of NVIDIA GPUs that the driver shows; "NVIDIA GPU" if it does not say which.
std::vector<std::string> gpus();

}  // namespace lockstep::tools
