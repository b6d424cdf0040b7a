// The hardware of this machine that Lockstep uses, and what it leaves unused, in words for `lockstep info`. Free
// functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::tools {

/// "2 of 16 cores, 2 threads" and the quota, if it is smaller.
std::string cores_text(int usable, int present, int threads, std::optional<double> quota);
/// What --precision bf16 would use.
std::string bf16_text(bool avx512_bf16, bool amx);
/// The GPUs, and whether one of the backends uses them.
std::string gpu_text(const std::vector<std::string>& gpus, const std::vector<std::string>& backends);

/// Models of NVIDIA GPUs that the driver shows; "NVIDIA GPU" if it does not say which.
std::vector<std::string> gpus();

}  // namespace lockstep::tools
