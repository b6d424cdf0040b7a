// Ends training when a loss or the parameters become infinite or not a number. For the trainer's files.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "train/trainer.h"

namespace lockstep::train {

/// Formats a number; drops the sign that a NaN may have.
inline std::string shown(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

[[noreturn]] inline void throw_non_finite(const std::string& what, uint64_t step, int64_t epoch) {
  throw NonFiniteError(fmt::format("{} at step {} (epoch {}); a lower lr or a clip-norm may help", what, step, epoch),
                       step);
}

}  // namespace lockstep::train
