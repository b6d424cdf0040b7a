// Why a training ends, and where its time goes: plain values that every part of the library shares, from the exchange
// of gradients up to what a user's hooks are told. `lockstep/train.h` includes them. No threads, nothing owned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Why a run ended; its text is `stop_reason` in summary.json.
enum class StopReason : uint8_t { none, epochs, steps, seconds, loss, accuracy, data, interrupted, not_finite, error };
/// "epochs", "steps", "seconds", "loss", "accuracy", "data ran out", "interrupted", "non-finite loss", "error".
std::string text(StopReason reason);

/// Where the time of a process that trains goes, as its training thread sees it.
enum class Phase : uint8_t {
  data,        ///< waiting for a batch
  forward,     ///< computing the loss
  backward,    ///< computing gradients, without what sending them took meanwhile
  optimizer,   ///< updating parameters in this process
  push,        ///< sending gradients to parameter servers
  pull,        ///< receiving parameters from them, with the way there and back
  transfer,    ///< all-reduce: what is not hidden behind computing
  others,      ///< waiting for other members
  evaluation,  ///< with its pictures
  checkpoint,
  rest  ///< logs, displays, everything else
};
constexpr size_t kPhases = 11;
/// "data wait", "forward", "backward", "optimizer", "push", "pull", "transfer", "wait for others", "evaluation",
/// "checkpoint", "rest".
std::string_view text(Phase phase);
/// As files name it: "data", "others".
std::string_view name(Phase phase);
/// By phase; of a step they add up to the time since the end of the step before.
using PhaseSeconds = std::array<double, kPhases>;

/// One phase over a whole run.
struct PhaseRecord {
  Phase phase = Phase::rest;
  uint64_t count = 0;  ///< how often it took time
  double seconds = 0;  ///< in all
  double share = 0;    ///< of all phases
  double mean = 0;     ///< seconds each time, as the following
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};

}  // namespace lockstep::train
