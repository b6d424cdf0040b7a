// What a plan starts from: the work of a step by batch, its messages, its memory, as a recorded run or a profile shows
// them. Plain values and free functions; any thread.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plan/profile.h"
#include "predict/training.h"
#include "records/fit.h"

namespace lockstep::plan {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Time of a pass: a fixed part, and one for each example; or as measured at some batches.
struct PassTime {
  double fixed = 0;
  double each = 0;
  /// Batches in rising order, with seconds. Between them it is interpolated; beyond them it grows in proportion.
  std::vector<std::pair<double, double>> points = {};
  [[nodiscard]] double of(double batch) const;
};

struct Basis {
  std::string name = {};  ///< of the run or model
  std::string model = {};
  std::string dataset = {};
  bool from_run = false;
  std::vector<predict::Tensor> tensors = {};
  PassTime forward = {};
  PassTime backward = {};
  double optimizer = 0;
  double rest = 0;
  double load_each = 0;
  double spread = 0.05;
  double threads = 1;     ///< that these times were measured with
  double node_cores = 1;  ///< of the machine or node they were measured on
  bool quota = false;     ///< that node was emulated: its cores are a quota
  double element_bytes = 4;
  size_t all_reduce_bucket = size_t{25} << 20;
  predict::Costs costs = {};
  double worker_cost = 1;      ///< of the workers' messages, relative to these costs
  double worker_exchange = 0;  ///< CPU time of an exchange in a worker, whatever its messages
  double aside_each = 0;       ///< seconds of evaluations and checkpoints per example of the whole training
  double batch = 32;           ///< of the run, or the model's
  double rate = predict::kUnlimited;
  double delay = 0;
  double epoch_examples = kUnknown;
  double epochs = kUnknown;
  double memory_fixed = kUnknown;  ///< bytes of a worker's process without its batch
  double memory_each = 0;
  double node_memory = kUnknown;
  double error = 0.05;  ///< share by which its times may be wrong
  std::vector<std::string> notes = {};
};

/// `fit` must be there.
Basis basis_of(const records::RunRecord& run, const records::Fit& fit);
/// Takes from a profile of the run's model how computing grows with the batch, and what memory an example needs. How
/// long a step computes stays the run's, and so do its tensors, because the costs of messages were fitted with them.
/// Throws UsageError if the profile is of a model with other parameters.
void add_growth(const ModelProfile& profile, Basis& basis);
/// Uses the points with the number of threads nearest to `threads`.
Basis basis_of(const Profile& profile, const ModelProfile& model, int threads);

}  // namespace lockstep::plan
