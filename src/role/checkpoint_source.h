// Where the evaluator gets the parameters of each checkpoint from, without a shared file system: the parameter servers,
// or whoever leads an all-reduce. For one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "program/parameters.h"
#include "role/group_member.h"

namespace lockstep::role {

class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;

  /// The step of the next checkpoint after that one, with its parameters in place; nothing when training has ended.
  virtual std::optional<uint64_t> next(uint64_t after) = 0;
  /// A goal is met: training ends. Whoever decides that is told by the next call of `next` at the latest.
  virtual void stop(train::StopReason reason) = 0;
};

/// Borrows the parameters, which it writes.
std::unique_ptr<CheckpointSource> follow_checkpoints(const settings::Settings& settings, const ClusterProcess& group,
                                                     const std::string& job, const std::atomic<bool>* interrupt,
                                                     program::ParameterStore& parameters);

}  // namespace lockstep::role
