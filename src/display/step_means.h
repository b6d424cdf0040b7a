// Means of loss and accuracy over the examples of steps. A value for one thread.
#pragma once

#include <cstdint>

#include "lockstep/train_events.h"

namespace lockstep::display {

/// Sums over steps, cheap enough to update in every step.
struct StepMeans {
  double loss_sum = 0;
  uint64_t correct = 0;
  uint64_t examples = 0;

  void add(const train::StepEvent& event) {
    loss_sum += static_cast<double>(event.loss) * static_cast<double>(event.examples);
    correct += static_cast<uint64_t>(event.correct);
    examples += static_cast<uint64_t>(event.examples);
  }
  [[nodiscard]] double loss() const { return loss_sum / static_cast<double>(examples); }
  [[nodiscard]] double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }
};

}  // namespace lockstep::display
