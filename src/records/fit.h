// Fits the model of a training (src/predict) to a recorded run: machines, quotas, links and other programs as the run
// recorded them, and the work of a step and the costs of messages such that the simulated step takes as long as the
// recorded one, phase by phase. What stays is said: the part of a step that the model does not explain. Free
// functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "predict/simulate.h"
#include "predict/training.h"
#include "records/run_record.h"

namespace lockstep::records {

struct Fit {
  std::string missing;  ///< what the run lacks for a fit, as a clause; empty: the fit is there
  predict::Training training = {};
  predict::Prediction prediction = {};    ///< of that training
  std::vector<std::string> workers = {};  ///< role of each worker of the training
  std::vector<std::string> servers = {};
  bool links_known = false;  ///< rates of the links are recorded (emulated nodes) rather than fitted
  double step = 0;           ///< recorded seconds of a step, without evaluations and checkpoints
  double evaluation = 0;     ///< recorded seconds of evaluations per step, beside it
  double checkpoint = 0;     ///< of checkpoints
  double unexplained = 0;    ///< share of the step, 0 to 1
  double fixed_compute = 0;  ///< share of the computing time that does not grow with the batch, 0 to 1

  [[nodiscard]] double whole() const { return step + evaluation + checkpoint; }
  [[nodiscard]] bool there() const { return missing.empty(); }
};

Fit fit(const RunRecord& run);

/// Returns options for simulations of a training: fewer steps for many workers.
predict::SimulationOptions few_steps(const predict::Training& training);

/// Delay until a waiting thread runs on a machine that is not busy.
constexpr double kPlainWake = 25e-6;

}  // namespace lockstep::records
