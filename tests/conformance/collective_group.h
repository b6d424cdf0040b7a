// A group of one engine for a test: as threads of this process, or, where the environment variable
// LOCKSTEP_TEST_ENGINE names one (mpi), as the processes of a job of which this is one. The body of a test sees its
// member only, so that it is the same for all.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "collective/collective.h"

namespace lockstep::collective {

struct Arrangement {
  std::string engine;
  int size = 1;

  friend void PrintTo(const Arrangement& arrangement, std::ostream* out) {
    *out << arrangement.engine << " of " << arrangement.size;
  }
};

/// Every engine of this build that can be tested here, in groups of one to four; in a job, that one alone.
std::vector<Arrangement> arrangements();

/// Of the operations of a job's group.
Seconds job_deadline();

/// Runs the body once for each member, all at the same time. The group of a job is the same for all tests, so a test
/// that breaks it has to be the only one; its deadline is LOCKSTEP_TEST_DEADLINE (seconds), whatever the options say.
void run_group(const Arrangement& arrangement, const GroupOptions& options,
               const std::function<void(Collective&)>& body);

/// The last member waits until `ended` counts all others, however long they take; as one of a job, which cannot see
/// them, for `long_enough`.
void wait_for_others(const Arrangement& arrangement, const std::atomic<int>& ended, Seconds long_enough);

}  // namespace lockstep::collective
