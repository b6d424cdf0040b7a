// Saves a training's checkpoints in its run's folder. For the training thread.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/checkpoint_store.h"
#include "train/setup.h"

namespace lockstep::train {

/// Keeps files of a group that another one has replaced from being renamed into place. Empty functions: no group.
struct Fence {
  std::function<std::string()> why_not = {};  ///< returns why a file must not be kept; empty: it may
  std::function<uint64_t()> group = {};       ///< returns the number of the group that writes
  std::function<void(const std::string& line)> warn = {};
};

class RunCheckpointer final : public Checkpointer {
 public:
  RunCheckpointer(Setup& setup, checkpoint::CheckpointStore store, Fence fence = {})
      : store_(std::move(store)), header_(setup.header()), fence_(std::move(fence)) {}

  CheckpointEvent save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) override;
  void take_over(checkpoint::TrainingState& state) override;

 private:
  checkpoint::CheckpointStore store_;
  checkpoint::CheckpointHeader header_;
  Fence fence_;
};

}  // namespace lockstep::train
