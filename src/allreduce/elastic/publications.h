// What the leader has published for the evaluator, and the evaluator's word. Thread-safe.
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
  /// Where an evaluator should ask; `here` where this member leads.
  struct Place {
    bool here = false;
    int leader = -1;     ///< as far as is known
    bool ended = false;  ///< training has
  };

  /// `expected`: an evaluator belongs to the cluster. Otherwise parameters are kept only once one has come.
  explicit Publications(bool expected) : expected_(expected) {}

  void publish(uint64_t step, std::span<const float> parameters);
  [[nodiscard]] train::StopReason word() const { return word_; }
  /// Answers one evaluator until it hangs up or `stop`.
  void serve(transport::Stream& stream, const std::function<Place()>& place);
  /// Whether an evaluator is here that has not had everything, or has not heard of the end.
  [[nodiscard]] bool awaited() const;
  /// Whether one belongs to the cluster that has not heard of the end, and may still be starting.
  [[nodiscard]] bool expected() const;
  void stop();

 private:
  /// What an evaluator was told.
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
  int told_end_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< of those that are here
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::atomic<train::StopReason> word_ = train::StopReason::none;
};

}  // namespace lockstep::allreduce::elastic
