// The state of a training run that must survive a stop, besides parameters and optimizer state. A plain value; the
// trainer owns the live one and checkpoints hold copies.
#pragma once

#include <cstdint>
#include <optional>

#include "data/plan.h"
#include "lockstep/train_events.h"

namespace lockstep::checkpoint {

struct EvalRecord {
  uint64_t step = 0;
  int64_t epoch = 0;
  double loss = 0;
  double accuracy = 0;
  int64_t examples = 0;
  friend bool operator==(const EvalRecord&, const EvalRecord&) = default;
};

/// Compares by accuracy, then by loss: returns true if `a` is better than `b`, or there is no `b`. All accuracies are
/// equal for a model without one.
inline bool is_better(const EvalRecord& a, const std::optional<EvalRecord>& b) {
  if (!b || a.accuracy > b->accuracy) return true;
  return !(a.accuracy < b->accuracy) && a.loss < b->loss;
}

struct TrainingState {
  uint64_t step = 0;          ///< updates made
  uint64_t examples = 0;      ///< examples seen
  uint64_t group = 0;         ///< number of the group that wrote it; 0: no group of processes
  int64_t epochs = 0;         ///< epochs completed
  data::Remainder data;       ///< remaining data
  double seconds = 0;         ///< seconds of training, over all parts of a resumed run
  double aside_seconds = 0;   ///< part of them spent on evaluations, their pictures and checkpoints
  double epoch_loss_sum = 0;  ///< sum of loss times examples in the current epoch
  uint64_t epoch_correct = 0;
  uint64_t epoch_examples = 0;
  double epoch_loss = 0;  ///< mean loss of the latest completed epoch; 0 before
  double epoch_accuracy = 0;
  std::optional<EvalRecord> last_eval;
  std::optional<EvalRecord> best_eval;
  std::optional<EvalRecord> best_checkpoint;  ///< best evaluation whose parameters are in a checkpoint
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

}  // namespace lockstep::checkpoint
