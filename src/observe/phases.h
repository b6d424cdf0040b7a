// Adds up the time of steps per phase. Cheap enough for every step: a few additions and a histogram entry for each
// phase that took time; nothing is allocated after construction. One thread adds; the same thread, or another after it
// has ended, asks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/durations.h"
#include "lockstep/run_types.h"

namespace lockstep::observe {

using base::Durations;

class PhaseTimes {
 public:
  /// Adds the phases of a step.
  void add(const train::PhaseSeconds& seconds);
  /// Adds phases outside of steps.
  void add_aside(const train::PhaseSeconds& seconds);
  /// Returns the phases that took time, in their order. Phases of a step count for every step, even if they took none.
  [[nodiscard]] std::vector<train::PhaseRecord> records() const;
  [[nodiscard]] double seconds(train::Phase phase) const { return durations_[static_cast<size_t>(phase)].seconds(); }

 private:
  std::array<Durations, train::kPhases> durations_;
};

}  // namespace lockstep::observe
