// The evaluator's source of checkpoints without a shared file system: the parameter servers, or the leader of an
// all-reduce. For one thread.
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

  /// Waits for the next checkpoint after that step, puts its parameters in place and returns its step; nothing if
  /// training has ended.
  virtual std::optional<uint64_t> next(uint64_t after) = 0;
  /// Reports that a goal is met and training should end. The coordinator or leader hears of it with the next call of
  /// `next` at the latest.
  virtual void stop(train::StopReason reason) = 0;
};

/// Borrows `parameters` and writes them.
std::unique_ptr<CheckpointSource> follow_checkpoints(const settings::Settings& settings, const ClusterProcess& process,
                                                     const std::string& job, const std::atomic<bool>* interrupt,
                                                     program::ParameterStore& parameters);

}  // namespace lockstep::role
