// The evaluator's side of a training by all-reduce: it is no member, asks whoever leads for the next published
// parameters, and follows when another one leads. For one thread.
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
  /// Of the options it uses spec, task, security, job, patience, log and interrupt.
  explicit CheckpointFollower(const ElasticOptions& options);
  ~CheckpointFollower();
  CheckpointFollower(const CheckpointFollower&) = delete;
  CheckpointFollower& operator=(const CheckpointFollower&) = delete;

  /// The step of the next published parameters that are newer than `after`, which are then in `parameters`; nothing
  /// when training has ended or the interrupt came. Throws Error where no member could be reached for as long as the
  /// patience lasts, UsageError where one refused, DataError where the parameters are of another model.
  std::optional<uint64_t> next(uint64_t after, std::span<float> parameters);
  /// A goal is met that ends training.
  void stop(train::StopReason reason);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::allreduce
