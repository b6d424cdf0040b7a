// A group of one engine for a test: threads of this process, or, if the environment variable LOCKSTEP_TEST_ENGINE names
// an engine (mpi), the processes of a job that includes this one. A test's body sees only its own member, so it is the
// same for all engines.
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

/// Returns every engine of this build that can be tested here, in groups of one to four; in a job, only the job's
/// engine.
std::vector<Arrangement> arrangements();

/// Returns the deadline of operations of a job's group.
Seconds job_deadline();

/// Runs the body once for each member, all at the same time. A job has one group for all tests, so a test that breaks
/// the group must be the only one. The job's deadline is LOCKSTEP_TEST_DEADLINE (seconds), whatever the options say.
void run_group(const Arrangement& arrangement, const GroupOptions& options,
               const std::function<void(Collective&)>& body);

/// Lets the last member wait until `ended` counts all others. A process of a job cannot see them and waits for
/// `long_enough`.
void wait_for_others(const Arrangement& arrangement, const std::atomic<int>& ended, Seconds long_enough);

}  // namespace lockstep::collective
