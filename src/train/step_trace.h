// A training thread's part of a trace: its steps, their phases and kernels. For that thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/tracer.h"
#include "exchange/exchange.h"
#include "lockstep/train_events.h"
#include "program/program.h"

namespace lockstep::train {

class StepTrace {
 public:
  using Clock = base::TraceTrack::Clock;
  static constexpr uint64_t kSkipped = 10;  ///< first steps, which are not typical

  /// Traces nothing without a track. `steps` after the first few turn the tracer on, 0: all later ones; absent: another
  /// thread turns it on and off.
  StepTrace(base::TraceTrack* track, std::optional<uint64_t> steps);

  /// Returns true if the current step is traced.
  [[nodiscard]] bool on() const { return on_; }
  /// Records the end of a step; the next one begins.
  void step(uint64_t number, Clock::time_point begin, Clock::time_point end);
  void phase(Phase phase, Clock::time_point begin, Clock::time_point end);
  /// Records the phases of an exchange's finish().
  void exchanged(const exchange::StepInfo& info);
  void run(program::Program& program, const backend::StepContext& context,
           base::FunctionRef<void(program::ParameterRange)> announce);

 private:
  using Labels = std::vector<const base::TraceLabel*>;  ///< labels by kernel

  const Labels& labels_of(const program::Program& program);
  void look();

  base::TraceTrack* track_;
  std::optional<uint64_t> steps_;
  uint64_t made_ = 0;
  bool on_ = false;
  const base::TraceLabel* step_label_ = nullptr;
  std::array<const base::TraceLabel*, kPhases> phase_labels_ = {};
  std::map<const program::Program*, Labels> kernels_;
};

}  // namespace lockstep::train
