// Saves checkpoints of a training into its run's folder. For the training thread.
#pragma once

#include "train/checkpoint_store.h"
#include "train/setup.h"

namespace lockstep::train {

class RunCheckpointer final : public Checkpointer {
 public:
  RunCheckpointer(Setup& setup, CheckpointStore store) : store_(std::move(store)), header_(setup.header()) {}

  CheckpointEvent save(const TrainingState& state, const exchange::Snapshot& snapshot) override;
  void take_over(TrainingState& state) override;

 private:
  CheckpointStore store_;
  CheckpointHeader header_;
};

}  // namespace lockstep::train
