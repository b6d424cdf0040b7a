// Applies updates to a server's shard and stores them. That may take long (a large model, a disk), so it happens
// without the server's mutex, and this has a lock of its own: meanwhile the job decides, heartbeats are answered, and
// pushes arrive. The caller has counted the update before (Job::begin) and made its Work with the mutex held; it looks
// again after it (Job::finish, Job::book): workers may have left or come back, and the parameters may have been set
// again. Thread-safe; the job sees to it that one update is made at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/job_types.h"
#include "ps/parameter_shard.h"

namespace lockstep::ps {

class Applier {
 public:
  /// A counted update.
  struct Task {
    const Update& update;
    optim::Update how;    ///< how the optimizer applies the gradients, but for clipping
    float clip_norm = 0;  ///< 0: their sum is not clipped
    bool lock_free = false;
    std::string ledger;  ///< stored with the version
  };
  struct Done {
    optim::Update how;
    float gradient_norm = 0;  ///< of the sum that is clipped; otherwise NaN
    double stored = 0;        ///< seconds that making it durable took
  };

  /// Counts an update as under way, and keeps its shard. The caller makes it before it releases the mutex under which
  /// the update was counted, so that wait_until_idle() misses none.
  class Work {
   public:
    Work(Applier& applier, std::shared_ptr<ParameterShard> shard);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    [[nodiscard]] ParameterShard& shard() const { return *shard_; }

   private:
    Applier& applier_;
    std::shared_ptr<ParameterShard> shard_;
  };

  /// `point` is called at each update, before anything is done, with no lock held; for tests.
  explicit Applier(std::function<void()> point) : point_(std::move(point)) {}

  /// Makes the next version. Lock-free: counts it in the state, and `apply_in_place` follows.
  [[nodiscard]] Done make(const Work& work, const Task& task) const;
  /// Lock-free: applies a counted gradient. Several threads may.
  static void apply_in_place(const Work& work, const Booked& booked);
  /// Waits until no Work is left. The caller sees to it that none begins: it holds the mutex under which they are made.
  void wait_until_idle();

 private:
  static Done clip(ParameterShard& shard, const Task& task, const std::vector<Contribution>& contributions);

  const std::function<void()> point_;
  base::Mutex mutex_;
  base::Condition idle_;
  int under_way_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::ps
