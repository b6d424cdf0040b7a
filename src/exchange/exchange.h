// How gradients meet. An Exchange owns the optimizer and turns this process's gradients into updated parameters; it
// is the only thing that differs between one process, all-reduce and a parameter server, and the trainer does not
// know which one it has. One training thread calls it; implementations may use threads of their own.
//
//   begin(step) -> ready(range) for each gradient, in the order they become final -> finish()
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/program.h"
#include "optim/optimizer.h"

namespace lockstep::exchange {

/// When the memory of an announced range may be read. On a CPU that is at once; a GPU backend puts its event here.
struct Event {};

struct StepStart {
  uint64_t step = 0;      ///< updates made before this one
  uint64_t examples = 0;  ///< behind the gradients of this process: their weight in an average
};

struct StepInfo {
  uint64_t step = 0;  ///< updates made so far, this one included
  float learning_rate = 0;
  float gradient_norm = 0;  ///< before clipping; NaN unless clipping asked for it
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void begin(const StepStart& start) = 0;
  /// The gradients of `range` are final once `event` has happened.
  virtual void ready(graph::ParameterRange range, Event event) = 0;
  /// Waits until the parameters are updated.
  virtual base::Result<StepInfo> finish() = 0;

  /// The optimizer's state for checkpoints: named spans in a fixed order, each as long as the parameters.
  [[nodiscard]] virtual std::vector<optim::StateSlot> state() = 0;
};

}  // namespace lockstep::exchange
