// The learning rate as a pure function of the step: the same step gives the same rate whoever asks, so a resumed run
// and every worker agree without sharing state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

struct Schedule {
  enum class Kind : uint8_t { constant, step, exponential, cosine, linear, polynomial };

  Kind kind = Kind::constant;
  float base = 0.01F;         ///< the rate after warm-up, before decay
  float end = 0;              ///< what cosine, linear and polynomial end at
  float decay_rate = 0.1F;    ///< step: factor per decay_steps, at once; exponential: the same, gradually
  float power = 2;            ///< of polynomial
  uint64_t decay_steps = 0;   ///< cosine, linear, polynomial: where the end is reached; counted from the end of warm-up
  uint64_t warmup_steps = 0;  ///< the rate rises linearly to base over this many steps
};

std::string_view name(Schedule::Kind kind);
/// Throws UsageError that suggests the nearest name.
Schedule::Kind parse_schedule(std::string_view text);
const std::vector<std::string>& schedule_names();

/// The rate of update `step`, counted from 0. Throws UsageError for a decaying schedule without decay_steps.
float learning_rate(const Schedule& schedule, uint64_t step);

}  // namespace lockstep::optim
