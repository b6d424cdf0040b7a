// Shares of the step time in a few words for a live display: "backward 38 %, forward 22 %, pull 12 %".
#pragma once

#include <string>

#include "lockstep/run_types.h"

namespace lockstep::display {

/// Returns the three largest shares worth showing; empty if there are none.
std::string largest_phases(const train::PhaseSeconds& phases);

/// Phase times since the last call of take().
class PhaseShares {
 public:
  void add(const train::PhaseSeconds& phases) {
    for (size_t i = 0; i < phases.size(); ++i) since_[i] += phases[i];
  }
  /// Returns the shares of the time, all zero if there was none, and starts again from zero.
  train::PhaseSeconds take();

 private:
  train::PhaseSeconds since_ = {};
};

}  // namespace lockstep::display
