// The clock of a simulation and what happens when. Events at the same time happen in the order of their making, so
// that a simulation always goes the same way. Single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace lockstep::predict {

using Action = std::function<void()>;

class Events {
 public:
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] uint64_t happened() const { return happened_; }

  void at(double time, Action action) { queue_.push({time > now_ ? time : now_, next_++, std::move(action)}); }
  void after(double seconds, Action action) { at(now_ + seconds, std::move(action)); }

  /// Lets the next event happen; false: there is none.
  bool step() {
    if (queue_.empty()) return false;
    now_ = queue_.top().time;
    const Action action = std::move(const_cast<Event&>(queue_.top()).action);  // the order does not depend on it
    queue_.pop();
    ++happened_;
    action();
    return true;
  }

 private:
  struct Event {
    double time;
    uint64_t number;
    Action action;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  std::priority_queue<Event> queue_;
  double now_ = 0;
  uint64_t next_ = 0;
  uint64_t happened_ = 0;
};

}  // namespace lockstep::predict
