// Runs a group's operations one after the other, in the order in which they are posted, on a thread of its own, so that
// they overlap what the training thread computes. A failure sticks: what is posted later does not run. One thread
// posts and waits; the thread starts with the first operation that is posted ahead.
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
  /// Waits for what is under way: abort the group first where that may take long.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// To run while the caller goes on.
  void post(Operation operation);
  /// Runs it after all that was posted, and waits. On the caller's thread where nothing else is under way.
  base::Status run(const Operation& operation);
  /// Waits for all that was posted; then there is no failure any more.
  void reset();

  /// Spent in operations since the last call of this.
  [[nodiscard]] double take_seconds();

 private:
  void work();
  void drain();
  void execute(const Operation& operation);

  base::Mutex mutex_;
  base::Condition changed_;
  std::vector<Operation> queue_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t next_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< in the queue
  bool running_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::optional<base::Failure> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  double seconds_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace lockstep::allreduce
