#include "train/machine.h"

#include <sys/resource.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/null/null_backend.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::train {

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names{"cpu", "null"};
  return names;
}

std::unique_ptr<backend::Backend> make_backend(const std::string& name, int threads) {
  if (name == "cpu") return backend::make_cpu_backend({.threads = threads});
  if (name == "null") return backend::make_null_backend();
  throw UsageError("unknown backend '" + name + "'" + base::hint(name, backend_names()));
}

int resolve_threads(const Settings& settings) {
  return settings.threads > 0 ? static_cast<int>(settings.threads) : base::available_cores();
}

base::WaitPolicy wait_policy(const Settings& settings) {
  if (settings.wait_policy == "spin") return base::WaitPolicy::spin;
  if (settings.wait_policy == "block") return base::WaitPolicy::block;
  const bool fits = resolve_threads(settings) <= base::available_cores();
  return fits ? base::WaitPolicy::brief : base::WaitPolicy::block;
}

std::string active_isa() { return std::string(backend::cpu::name(backend::cpu::active_isa())); }

std::string program_version() { return LOCKSTEP_VERSION; }

uint64_t peak_memory_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace lockstep::train
