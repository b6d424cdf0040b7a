#include "wait_policy.h"

#include <strings.h>
#include <unistd.h>

#include <cstdlib>

#include "train/machine.h"

namespace lockstep::tools {

void ensure_wait_policy(const train::Settings& settings, char** argv) {
  const std::string wanted = train::omp_wait_policy(settings);
  const char* current = std::getenv("OMP_WAIT_POLICY");  // NOLINT(concurrency-mt-unsafe): no other thread yet
  const bool free_to_choose = settings.wait_policy != "auto" || current == nullptr;
  if (wanted.empty() || !free_to_choose) return;
  if (current != nullptr && strcasecmp(current, wanted.c_str()) == 0) return;
  // The new process finds the variable as wanted, so this happens once. If it cannot be done, training is only slower.
  if (setenv("OMP_WAIT_POLICY", wanted.c_str(), 1) == 0)
    execv("/proc/self/exe", argv);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace lockstep::tools
