// The evaluator's side of a training by all-reduce. The evaluator is not a member. It asks the leader for the next
// published parameters, and follows when the leader changes. For one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "allreduce/elastic/elastic_membership.h"
#include "lockstep/run_types.h"

namespace lockstep::allreduce {

class CheckpointFollower {
 public:
  /// Uses spec, task, security, job, patience, log and interrupt of the options.
  explicit CheckpointFollower(const ElasticOptions& options);
  ~CheckpointFollower();
  CheckpointFollower(const CheckpointFollower&) = delete;
  CheckpointFollower& operator=(const CheckpointFollower&) = delete;

  /// Waits for published parameters newer than `after`, copies them to `parameters` and returns their step. Returns
  /// nothing when training has ended or was interrupted. Throws Error if no member was reached within the patience,
  /// UsageError if one refused, DataError if the parameters belong to another model.
  std::optional<uint64_t> next(uint64_t after, std::span<float> parameters);
  /// Tells the members that a goal was met which ends training.
  void stop(train::StopReason reason);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::allreduce
