// Saves a training's checkpoints in its run's folder. For the training thread.
#pragma once

#include "checkpoint/checkpoint_store.h"
#include "train/setup.h"

namespace lockstep::train {

class RunCheckpointer final : public Checkpointer {
 public:
  RunCheckpointer(Setup& setup, checkpoint::CheckpointStore store)
      : store_(std::move(store)), header_(setup.header()) {}

  CheckpointEvent save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) override;
  void take_over(checkpoint::TrainingState& state) override;

 private:
  checkpoint::CheckpointStore store_;
  checkpoint::CheckpointHeader header_;
};

}  // namespace lockstep::train
