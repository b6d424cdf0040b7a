#include "settings/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/null/null_backend.h"
#include "base/cpu_quota.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::settings {

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names{"cpu", "null"};
  return names;
}

std::unique_ptr<backend::Backend> make_backend(const std::string& name, int threads, const BackendOptions& options) {
  const bool bf16 = options.precision == Precision::bf16;
  if (name == "cpu") {
    return backend::make_cpu_backend({.threads = threads, .exact_conv = options.exact_conv, .bf16 = bf16});
  }
  if (bf16) throw UsageError("precision: bf16 is not for backend '" + name + "'; only f32 is allowed there");
  if (name == "null") return backend::make_null_backend();
  throw UsageError("unknown backend '" + name + "'" + base::hint(name, backend_names()));
}

int resolve_threads(const Settings& settings) {
  const int cores = base::available_cores();
  if (settings.threads > int64_t{cores} * kThreadsPerCore) {
    throw UsageError(fmt::format("threads: {} are too many for {} cores; at most {} are allowed, {} per core",
                                 settings.threads, cores, cores * kThreadsPerCore, kThreadsPerCore));
  }
  return settings.threads > 0 ? static_cast<int>(settings.threads) : base::useful_threads();
}

base::WaitPolicy wait_policy(const Settings& settings) {
  if (settings.wait_policy == IdleThreads::spin) return base::WaitPolicy::spin;
  if (settings.wait_policy == IdleThreads::block) return base::WaitPolicy::block;
  const int useful = base::useful_threads();
  const int64_t replicas = std::max<int64_t>(settings.replicas, 1);
  const int64_t each = settings.threads > 0 ? resolve_threads(settings) : std::max<int64_t>(useful / replicas, 1);
  const bool fits = each * replicas <= useful;
  return fits ? base::WaitPolicy::brief : base::WaitPolicy::block;
}

std::string wait_policy_name(const Settings& settings) {
  const char* environment = std::getenv("OMP_WAIT_POLICY");  // NOLINT(concurrency-mt-unsafe): nobody sets it any more
  if (settings.wait_policy == IdleThreads::automatic && environment != nullptr) {
    return *environment == 'a' || *environment == 'A' ? "spin" : "block";
  }
  const base::WaitPolicy policy = wait_policy(settings);
  if (policy == base::WaitPolicy::brief) return "brief";
  return policy == base::WaitPolicy::spin ? "spin" : "block";
}

std::string active_isa() { return std::string(backend::cpu::name(backend::cpu::active_isa())); }

std::string program_version() { return LOCKSTEP_VERSION; }

uint64_t peak_memory_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace lockstep::settings
