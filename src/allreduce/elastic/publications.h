// Parameters that the leader has published for the evaluator, and the evaluator's stop. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "lockstep/run_types.h"
#include "transport/stream.h"

namespace lockstep::allreduce::elastic {

class Publications {
 public:
  /// The member that an evaluator should ask. `here`: this member leads.
  struct Place {
    bool here = false;
    int leader = -1;     ///< leader, as far as is known
    bool ended = false;  ///< training has ended
  };

  /// `expected`: the cluster has an evaluator. Otherwise parameters are kept only once one has connected.
  explicit Publications(bool expected) : expected_(expected) {}

  void publish(uint64_t step, std::span<const float> parameters);
  [[nodiscard]] train::StopReason stop_reason() const { return stop_reason_; }
  /// Answers one evaluator until it hangs up or `stop` is called.
  void serve(transport::Stream& stream, const std::function<Place()>& place);
  /// True if a connected evaluator has not received everything, or does not know of the end.
  [[nodiscard]] bool awaited() const;
  /// True if the cluster has an evaluator that does not know of the end, and it may still be starting.
  [[nodiscard]] bool expected() const;
  void stop();

 private:
  /// Answers given to an evaluator.
  enum class Told : uint8_t { news, end_of_training };
  struct Published {
    uint64_t step = 0;
    std::shared_ptr<const std::vector<float>> parameters;
  };
  base::Result<Told> answer_follow(transport::Stream& stream, uint64_t after, const std::function<Place()>& place);

  mutable base::Mutex mutex_;
  base::Condition changed_;
  std::deque<Published> published_ LOCKSTEP_GUARDED_BY(mutex_);
  const bool expected_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  bool came_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool heard_end_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int evaluators_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int told_end_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< connected evaluators that know of the end
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::atomic<train::StopReason> stop_reason_ = train::StopReason::none;
};

}  // namespace lockstep::allreduce::elastic
