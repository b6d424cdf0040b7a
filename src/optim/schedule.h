// The learning rate as a pure function of the step, so that a resumed run and every worker agree without sharing state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

struct Schedule {
  enum class Kind : uint8_t { constant, step, exponential, cosine, linear, polynomial };

  Kind kind = Kind::constant;
  float base = 0.01F;       ///< rate after warm-up, before decay
  float end = 0;            ///< final rate of cosine, linear and polynomial
  float decay_rate = 0.1F;  ///< factor per decay_steps; step applies it at once, exponential gradually
  float power = 2;          ///< for polynomial
  uint64_t decay_steps =
      0;  ///< cosine, linear, polynomial: step at which `end` is reached, counted from the end of warm-up
  uint64_t warmup_steps = 0;  ///< number of steps in which the rate rises linearly to base
};

std::string_view name(Schedule::Kind kind);
/// Returns the kind of that name. Throws UsageError with the nearest name as a suggestion.
Schedule::Kind parse_schedule(std::string_view text);
const std::vector<std::string>& schedule_names();

/// Returns the rate of update `step`, counted from 0. Throws UsageError for a decaying schedule without decay_steps.
float learning_rate(const Schedule& schedule, uint64_t step);

}  // namespace lockstep::optim
