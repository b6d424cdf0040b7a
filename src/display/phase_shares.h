// Where the time of steps goes, as a few words for a live display: "backward 38 %, forward 22 %, pull 12 %".
#pragma once

#include <string>

#include "lockstep/run_types.h"

namespace lockstep::display {

/// The three largest shares that are worth a word; empty where there are none.
std::string largest_phases(const train::PhaseSeconds& phases);

/// What has gathered since it was last asked.
class PhaseShares {
 public:
  void add(const train::PhaseSeconds& phases) {
    for (size_t i = 0; i < phases.size(); ++i) since_[i] += phases[i];
  }
  /// Shares of the time; all zero where there was none. Begins anew.
  train::PhaseSeconds take();

 private:
  train::PhaseSeconds since_ = {};
};

}  // namespace lockstep::display
