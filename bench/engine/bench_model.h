// A model ready to train in a benchmark: its programs, parameters, exchange and one batch in memory. The batch holds
// learnable images (prototypes under noise), standardised for models that want it, or plain noise for a model of
// generated images.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "exchange/local_exchange.h"
#include "program/parameters.h"
#include "train/programs.h"

namespace lockstep::bench {

struct BenchOptions {
  std::string model = "lenet";
  int64_t batch = 64;
  std::string optimizer = "adam";
  int threads = 1;
  bool exact_conv = false;
  bool bf16 = false;
  std::optional<bool> channels_last = {};  ///< layout of bfloat16 images, if not the CPU's own
  settings::Options options = {};          ///< model options
};

class BenchModel {
 public:
  explicit BenchModel(const BenchOptions& options);

  /// Runs one whole training step on the given batch (forward, backward, update); returns the loss.
  float step(const float* images, const int32_t* labels, int64_t count);
  /// Runs one step on the built-in batch.
  float step() { return step(images_.data(), labels_.data(), options_.batch); }
  /// Does the same and reports when each kernel ran; returns the seconds that the update of the parameters took.
  double step_observed(program::Program::Observer observe);

  [[nodiscard]] std::span<float> images() { return images_; }
  [[nodiscard]] std::span<const int32_t> labels() const { return labels_; }
  [[nodiscard]] train::Programs& programs() { return programs_; }
  [[nodiscard]] program::ParameterStore& parameters() { return parameters_; }
  [[nodiscard]] exchange::Exchange& exchange() { return exchange_; }

 private:
  /// Binds the batch and begins a step.
  program::Program& begin(const float* images, const int32_t* labels, int64_t count);

  BenchOptions options_;
  train::ModelSpec spec_;
  std::unique_ptr<backend::Backend> backend_;
  program::ParameterStore parameters_;
  train::Programs programs_;
  exchange::LocalExchange exchange_;
  std::vector<float> images_;
  std::vector<int32_t> labels_;
  uint64_t steps_ = 0;
};

}  // namespace lockstep::bench
