// A run's use of the machine: its backend and threads. Free functions, any thread.
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

/// Makes the backend "cpu" or "null"; throws UsageError that suggests the nearest name otherwise. Throws UsageError for
/// a precision that the backend does not have on this machine.
std::unique_ptr<backend::Backend> make_backend(const std::string& name, int threads,
                                               const BackendOptions& options = {});

/// Returns the threads of a run: the number asked for, or one per core that this process may use. Throws UsageError for
/// more than kThreadsPerCore per core: they would only wait for each other, or fail to start.
constexpr int kThreadsPerCore = 16;
int resolve_threads(const Settings& settings);

/// Returns how idle threads wait, as the settings say; `auto` spins briefly if every thread has a core, otherwise
/// blocks.
base::WaitPolicy wait_policy(const Settings& settings);

/// Returns the policy in effect: "brief", "spin" or "block". Under `auto`, OMP_WAIT_POLICY takes precedence.
std::string wait_policy_name(const Settings& settings);

/// Returns the instruction set that the CPU kernels use: "sse4", "avx2" or "avx512".
std::string active_isa();

/// Returns the version of Lockstep: "0.1.0".
std::string program_version();

/// Returns the peak memory of this process so far.
uint64_t peak_memory_bytes();

}  // namespace lockstep::settings
