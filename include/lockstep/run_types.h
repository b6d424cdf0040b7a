// Reasons for the end of a training run, and the phases of its time: plain values that every part of the library
// shares, from the exchange of gradients up to a user's hooks. `lockstep/train.h` includes them. No threads, nothing
// owned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Reason for the end of a run; its text is `stop_reason` in summary.json.
enum class StopReason : uint8_t { none, epochs, steps, seconds, loss, accuracy, data, interrupted, not_finite, error };
/// Returns "epochs", "steps", "seconds", "loss", "accuracy", "data ran out", "interrupted", "non-finite loss" or
/// "error".
std::string text(StopReason reason);

/// The phases of a training process's time, as its training thread sees them.
enum class Phase : uint8_t {
  data,        ///< waiting for a batch
  forward,     ///< computing the loss
  backward,    ///< computing gradients, without the time spent sending them meanwhile
  optimizer,   ///< updating parameters in this process
  push,        ///< sending gradients to parameter servers
  pull,        ///< receiving parameters from them, round trip included
  transfer,    ///< all-reduce: the part not hidden behind computing
  others,      ///< waiting for other members
  evaluation,  ///< evaluations with their pictures
  checkpoint,
  rest  ///< logs, displays, everything else
};
constexpr size_t kPhases = 11;
/// Returns the phase for people: "data wait", "forward", "backward", "optimizer", "push", "pull", "transfer", "wait for
/// others", "evaluation", "checkpoint" or "rest".
std::string_view text(Phase phase);
/// Returns the phase's name in files: "data", "others".
std::string_view name(Phase phase);
/// Seconds by phase. The seconds of one step add up to the time since the end of the step before.
using PhaseSeconds = std::array<double, kPhases>;

/// One phase over a whole run.
struct PhaseRecord {
  Phase phase = Phase::rest;
  uint64_t count = 0;  ///< number of times
  double seconds = 0;  ///< total
  double share = 0;    ///< share of the time of all phases, 0 to 1
  double mean = 0;     ///< seconds each time, as are the quantiles below
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};

}  // namespace lockstep::train
