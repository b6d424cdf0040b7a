// Where a training run is: all that must survive a stop besides parameters and optimizer state. A plain value; the
// trainer owns the living one and checkpoints hold copies.
#pragma once

#include <cstdint>
#include <optional>

#include "data/plan.h"
#include "lockstep/train.h"

namespace lockstep::checkpoint {

struct EvalRecord {
  uint64_t step = 0;
  int64_t epoch = 0;
  double loss = 0;
  double accuracy = 0;
  int64_t examples = 0;
  friend bool operator==(const EvalRecord&, const EvalRecord&) = default;
};

/// By accuracy, then by loss: true where `a` is better than `b`, or the first. Of a model without an accuracy all have
/// the same one.
inline bool is_better(const EvalRecord& a, const std::optional<EvalRecord>& b) {
  if (!b || a.accuracy > b->accuracy) return true;
  return !(a.accuracy < b->accuracy) && a.loss < b->loss;
}

struct TrainingState {
  uint64_t step = 0;          ///< updates made
  uint64_t examples = 0;      ///< seen
  int64_t epochs = 0;         ///< completed
  data::Remainder data;       ///< what is left of it
  double seconds = 0;         ///< of training, over all parts of a resumed run
  double aside_seconds = 0;   ///< of those: evaluations, their pictures and checkpoints
  double epoch_loss_sum = 0;  ///< of the current epoch: loss times examples
  uint64_t epoch_correct = 0;
  uint64_t epoch_examples = 0;
  double epoch_loss = 0;  ///< means of the latest completed epoch; 0 before
  double epoch_accuracy = 0;
  std::optional<EvalRecord> last_eval;
  std::optional<EvalRecord> best_eval;
  std::optional<EvalRecord> best_checkpoint;  ///< the best evaluation whose parameters are in a checkpoint
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

}  // namespace lockstep::checkpoint
