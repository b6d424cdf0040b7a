// Evaluates a model on one split: mean loss and accuracy over all of its examples, the short last batch included.
// Borrows examples, backend and parameters; keeps its own loader, so that repeated evaluations allocate nothing.
// For one thread at a time.
#pragma once

#include <cstdint>

#include "data/loader.h"
#include "train/programs.h"

namespace lockstep::train {

struct Metrics {
  double loss = 0;  ///< mean per example
  double accuracy = 0;
  int64_t examples = 0;
  bool has_accuracy = true;  ///< false for models whose answers are neither right nor wrong
};

class Evaluator {
 public:
  /// Throws UsageError for an empty split, or one without labels if the model needs them. `pixels`, if given, scale the
  /// images.
  Evaluator(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
            const data::Examples& examples, int64_t batch, const data::PixelScaling* pixels = nullptr);

  /// Evaluates the current parameters.
  Metrics run();

 private:
  Programs programs_;
  data::Loader loader_;
};

}  // namespace lockstep::train
