// What a training thread leaves in a trace: its steps, the phases in them and the kernels in those. For that thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/tracer.h"
#include "exchange/exchange.h"
#include "lockstep/train.h"
#include "program/program.h"

namespace lockstep::train {

class StepTrace {
 public:
  using Clock = base::TraceTrack::Clock;
  static constexpr uint64_t kSkipped = 10;  ///< steps at the beginning, which are like no others

  /// Nothing is traced without a track. `steps` after the first few turn the tracer on, 0: all after them; absent:
  /// another thread turns it on and off.
  StepTrace(base::TraceTrack* track, std::optional<uint64_t> steps);

  /// Whether the step under way is traced.
  [[nodiscard]] bool on() const { return on_; }
  /// A step ends and the next one begins.
  void step(uint64_t number, Clock::time_point begin, Clock::time_point end);
  void phase(Phase phase, Clock::time_point begin, Clock::time_point end);
  /// The phases of an exchange's finish().
  void exchanged(const exchange::StepInfo& info);
  void run(program::Program& program, const backend::StepContext& context,
           base::FunctionRef<void(program::ParameterRange)> announce);

 private:
  using Labels = std::vector<const base::TraceLabel*>;  ///< by kernel

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
