// Runs a group's operations one after the other, in the order of posting, on its own thread, so that they overlap with
// the training thread's computation. After a failure, operations posted later do not run. One thread posts and waits;
// the communicator's thread starts with the first operation posted ahead.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace lockstep::allreduce {

class Communicator {
 public:
  using Operation = std::function<base::Status()>;

  Communicator() = default;
  /// Waits for the operation in flight; abort the group first if that may take long.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Posts an operation to run in the background.
  void post(Operation operation);
  /// Runs the operation after everything posted, and waits. Uses the caller's thread if nothing else is in flight.
  base::Status run(const Operation& operation);
  /// Waits for everything posted, then clears the failure.
  void reset();

  /// Returns the time spent in operations since the last call.
  [[nodiscard]] double take_seconds();

 private:
  void work();
  void drain();
  void execute(const Operation& operation);

  base::Mutex mutex_;
  base::Condition changed_;
  std::vector<Operation> queue_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t next_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< index into the queue
  bool running_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::optional<base::Failure> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  double seconds_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace lockstep::allreduce
