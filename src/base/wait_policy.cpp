#include "base/wait_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/own_program.h"

namespace lockstep::base {
namespace {

constexpr const char* kPolicy = "OMP_WAIT_POLICY";
constexpr const char* kSpins = "GOMP_SPINCOUNT";
constexpr const char* kBriefSpins = "4000";  // about 50 microseconds

}  // namespace

void ensure_wait_policy(WaitPolicy policy, bool forced, char** argv) {
  const bool brief = policy == WaitPolicy::brief;
  const char* variable = brief ? kSpins : kPolicy;
  const char* wanted = brief ? kBriefSpins : (policy == WaitPolicy::spin ? "active" : "passive");
  const char* current = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  if (current != nullptr && std::strcmp(current, wanted) == 0) return;
  const bool user_chose = std::getenv(kPolicy) != nullptr || std::getenv(kSpins) != nullptr;  // NOLINT
  if (user_chose && !forced) return;
  if (forced) unsetenv(brief ? kPolicy : kSpins);  // NOLINT(concurrency-mt-unsafe)
  // The new process finds the variable set, so this happens once. If it fails, the work is only slower.
  if (setenv(variable, wanted, 1) == 0) execv(own_program().c_str(), argv);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace lockstep::base
