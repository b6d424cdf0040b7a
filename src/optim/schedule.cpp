#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::optim {
namespace {

double decayed(const Schedule& schedule, uint64_t step) {
  using Kind = Schedule::Kind;
  if (schedule.kind == Kind::constant) return schedule.base;
  if (schedule.decay_steps == 0) {
    throw UsageError("schedule '" + std::string(name(schedule.kind)) + "': decay-steps is 0; at least 1 is allowed");
  }
  const double base = schedule.base;
  const double end = schedule.end;
  const double done = static_cast<double>(step) / static_cast<double>(schedule.decay_steps);
  switch (schedule.kind) {
    case Kind::step:
      return base * std::pow(schedule.decay_rate, std::floor(done));
    case Kind::exponential:
      return base * std::pow(schedule.decay_rate, done);
    case Kind::cosine:
      return end + (base - end) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0)));
    case Kind::linear:
      return base + (end - base) * std::min(done, 1.0);
    case Kind::polynomial:
      return end + (base - end) * std::pow(1 - std::min(done, 1.0), schedule.power);
    case Kind::constant:
      break;
  }
  return base;
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"constant", "step", "exponential", "cosine", "linear", "polynomial"};
  return names;
}

std::string_view name(Schedule::Kind kind) { return schedule_names()[static_cast<size_t>(kind)]; }

Schedule::Kind parse_schedule(std::string_view text) {
  const auto& names = schedule_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<Schedule::Kind>(found - names.begin());
  throw UsageError("unknown schedule '" + std::string(text) + "'" + base::hint(text, names));
}

float learning_rate(const Schedule& schedule, uint64_t step) {
  if (step < schedule.warmup_steps) {
    const double risen = static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
    return static_cast<float>(schedule.base * risen);
  }
  if (schedule.kind == Schedule::Kind::constant) return schedule.base;
  return static_cast<float>(decayed(schedule, step - schedule.warmup_steps));
}

}  // namespace lockstep::optim
