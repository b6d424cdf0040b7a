// How many examples a training needs to a loss or accuracy, from recorded runs at several global batches. Plain values;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lockstep::plan {

/// Examples until a run reached the goal, by its global batch.
struct Reached {
  double global_batch = 0;
  double examples = 0;
};

struct Goal {
  std::string field;  ///< "accuracy" or "loss"
  double value = 0;
  std::vector<Reached> reached = {};  ///< ascending by batch; several runs of a batch are one mean
};

/// Adds a run if it reached the goal synchronously.
void add_run(const records::RunRecord& run, Goal& goal);

/// Returns the examples needed at a global batch, between the recorded ones and up to half as much beyond; NaN
/// elsewhere, and if fewer than two batches are recorded.
double examples_needed(const Goal& goal, double global_batch);

}  // namespace lockstep::plan
