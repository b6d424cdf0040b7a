#include "launch/repeated_failures.h"

#include <algorithm>

namespace lockstep::launch {

RepeatedFailures::Seen RepeatedFailures::note(const std::string& host, const std::string& role,
                                              const RoleFailure& failure) {
  auto fault = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& known) {
    return known.host == host && known.failure.same_fault(failure);
  });
  if (fault == faults_.end()) fault = faults_.insert(fault, {host, failure});
  if (failure.saved.value_or(0) > fault->failure.saved.value_or(0)) *fault = {host, failure};
  fault->roles.insert(role);
  return {++fault->times, static_cast<int>(fault->roles.size())};
}

}  // namespace lockstep::launch
