// What of the machine a run uses: its backend and its threads. Free functions, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "train/settings.h"

namespace lockstep::train {

const std::vector<std::string>& backend_names();
/// "cpu" or "null"; UsageError that suggests the nearest name otherwise.
std::unique_ptr<backend::Backend> make_backend(const std::string& name, int threads);

/// The threads a run uses: those asked for, or one per core that this process may use. UsageError for far too many.
int resolve_threads(const Settings& settings);

/// What OMP_WAIT_POLICY must be when the process starts: "active" where threads may spin (they all have a core),
/// "passive" where they must block. OpenMP reads it before main, so the program sets it and executes itself again.
std::string omp_wait_policy(const Settings& settings);

/// The most memory that this process has had so far.
uint64_t peak_memory_bytes();

}  // namespace lockstep::train
