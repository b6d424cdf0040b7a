// Adds up where the time of steps goes. Cheap enough for every step: a few additions and a place in a histogram for
// each phase that took time; nothing is allocated after construction. One thread adds; the same thread, or another when
// it has ended, asks.
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
  /// Of a step.
  void add(const train::PhaseSeconds& seconds);
  /// Of what came besides.
  void add_aside(const train::PhaseSeconds& seconds);
  /// Those that took time, in the order of the phases. Those of a step count for every step, also where they took none.
  [[nodiscard]] std::vector<train::PhaseRecord> records() const;
  [[nodiscard]] double seconds(train::Phase phase) const { return durations_[static_cast<size_t>(phase)].seconds(); }

 private:
  std::array<Durations, train::kPhases> durations_;
};

}  // namespace lockstep::observe
