// Records of the workers' steps of a run, as the fit of its model needs it: without what came before, and with stops
// told apart from work. Internal to this room.
#pragma once

#include <algorithm>
#include <vector>

#include "records/fit.h"
#include "records/why_facts.h"

namespace lockstep::records {

/// Largest spread of computing times.
constexpr double kMostSpread = 0.8;

/// Recorded means of a worker's steps.
struct Recorded {
  predict::WorkerTimes times;
  predict::WorkerTimes usual;  ///< medians: of steps that no quota paused, if steps are much shorter than its period
  double spread = 0;
  /// Most steps are not paused by a quota; then these are their times, and 0 otherwise.
  double forward = 0;
  double backward = 0;
  double cpu = kUnknown;  ///< CPU time of the process per step, without evaluations
  /// Time by which means are above medians: rare long delays. Of what a worker does itself, and of the answers.
  double late = 0;
  double late_answers = 0;
  double late_sums = 0;  ///< all-reduce
  double silent = 0;     ///< share of the time in which its monitor was late, 0 to 1
  double pause = 0;
};

/// Returns the steps of the training's workers, for which nodes and workers are set.
std::vector<Recorded> recorded_steps(const RunRecord& run, const RunFacts& facts, const Fit& fit);

/// Returns a value between two bounds; the lower one if it is not known.
inline double bounded(double value, double low, double high) {
  return known(value) ? std::clamp(value, low, high) : low;
}

}  // namespace lockstep::records
