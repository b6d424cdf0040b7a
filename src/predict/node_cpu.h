// The processors of a simulated node. Its tasks share the cores evenly, also with other programs. A node with a quota
// computes at full speed until the time of a period is used up, and then pauses until the next period; up to one
// period's unused time is kept. Emulated nodes may also have to share the cores of one machine. Borrows the events and
// the machine. Single-threaded.
#pragma once

#include <queue>
#include <vector>

#include "predict/events.h"
#include "predict/machine.h"
#include "predict/training.h"

namespace lockstep::predict {

class NodeCpu {
 public:
  /// `machine`: that this node is emulated on, beside others; may be null
  NodeCpu(Events& events, const Node& node, Machine* machine = nullptr);
  NodeCpu(const NodeCpu&) = delete;
  NodeCpu& operator=(const NodeCpu&) = delete;

  /// Calls `done` after `seconds` of work, which a free machine of speed 1 needs with `threads` cores.
  void run(double seconds, double threads, Action done);

  /// Returns the cores of the machine that the node would use now if it had them.
  [[nodiscard]] double wanted() const;
  /// Gives the node that many cores of the machine.
  void grant(double cores);

  /// Returns the CPU time used so far, in seconds of one core.
  [[nodiscard]] double used() const { return used_; }
  /// Returns the time in which tasks waited for the next period.
  [[nodiscard]] double paused() const { return paused_; }

 private:
  struct Task {
    double finish;  ///< on the scale of `progress_`
    uint64_t number;
    double threads;
    Action done;
    bool operator<(const Task& other) const {
      return finish != other.finish ? finish > other.finish : number > other.number;
    }
  };

  [[nodiscard]] bool limited() const { return node_.quota_period > 0; }
  [[nodiscard]] double time_of_period() const { return (node_.cores - node_.kept) * node_.quota_period; }
  /// Returns the progress of each task per second, were there no quota.
  [[nodiscard]] double pace() const;
  [[nodiscard]] bool out_of_time() const;
  void advance();
  void refill();
  void plan();
  /// Plans anew after the node's work has changed, and for the machine's other nodes, too.
  void changed();
  void happen();

  Events& events_;
  Node node_;
  Machine* machine_;
  double granted_ = kUnlimited;
  std::priority_queue<Task> tasks_;
  double threads_ = 0;   ///< sum over the tasks
  double progress_ = 0;  ///< of every task since the beginning
  double last_ = 0;      ///< time up to which all of this is known
  double left_ = 0;      ///< CPU time left until the next period
  double period_ends_ = 0;
  double used_ = 0;
  double paused_ = 0;
  uint64_t next_ = 0;
  uint64_t plans_ = 0;  ///< only the latest plan counts
};

}  // namespace lockstep::predict
