// What of the machine a run uses: its backend and its threads. Free functions, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/wait_policy.h"
#include "settings/settings.h"

namespace lockstep::settings {

const std::vector<std::string>& backend_names();
struct BackendOptions {
  bool exact_conv = false;
  Precision precision = Precision::f32;
};

/// "cpu" or "null"; UsageError that suggests the nearest name otherwise.
/// Throws UsageError for a precision that the backend does not have on this machine.
std::unique_ptr<backend::Backend> make_backend(const std::string& name, int threads,
                                               const BackendOptions& options = {});

/// The threads a run uses: those asked for, or one per core that this process may use. Throws UsageError for more than
/// kThreadsPerCore for each of those cores: they would only wait for each other, where they can be had at all.
constexpr int kThreadsPerCore = 16;
int resolve_threads(const Settings& settings);

/// How idle threads wait: as the settings say; `auto` spins briefly while every thread has a core, else blocks.
base::WaitPolicy wait_policy(const Settings& settings);

/// What became of it: "brief", "spin" or "block". Under `auto`, what OMP_WAIT_POLICY says stands.
std::string wait_policy_name(const Settings& settings);

/// The instruction set that the CPU kernels use: "sse4", "avx2" or "avx512".
std::string active_isa();

/// Of Lockstep: "0.1.0".
std::string program_version();

/// The most memory that this process has had so far.
uint64_t peak_memory_bytes();

}  // namespace lockstep::settings
