// Repeated failures of a job: how often the same fault has occurred without progress in between, whichever role it hit.
// A newer checkpoint counts as progress. For the supervisor's thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "launch/role_failure.h"

namespace lockstep::launch {

class RepeatedFailures {
 public:
  struct Seen {
    int times = 0;  ///< failures without progress, this one included
    int roles = 0;  ///< roles hit since then
  };

  /// Counts a failure of a role on a host ("": this machine).
  Seen note(const std::string& host, const std::string& role, const RoleFailure& failure);

 private:
  struct Fault {
    std::string host;
    RoleFailure failure;  ///< first failure since the last progress
    int times = 0;
    std::set<std::string> roles = {};
  };
  std::vector<Fault> faults_;
};

}  // namespace lockstep::launch
