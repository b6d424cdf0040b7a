// How gradients meet. An Exchange owns the optimizer and turns this process's gradients into updated parameters. One
// process, all-reduce and parameter servers differ only in their exchange; the trainer does not know which one it has.
// One training thread calls an exchange; implementations may use their own threads.
//
//   join() -> { begin(step) -> ready(range) for each gradient, in the order they become final -> finish() } -> leave()
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/plan.h"
#include "lockstep/run_types.h"
#include "optim/optimizer.h"
#include "program/program.h"

namespace lockstep::exchange {

/// The moment from which the memory of an announced range may be read: at once on a CPU. A GPU backend puts its event
/// here.
struct Event {};

struct StepStart {
  uint64_t step = 0;         ///< updates made before this one
  uint64_t examples = 0;     ///< examples behind this process's gradients: their weight in an average
  int64_t batches = 1;       ///< batches of the data plan behind the gradients
  double load_seconds = 0;   ///< time spent waiting for these batches
  double aside_seconds = 0;  ///< time spent on an evaluation or a checkpoint since the last step
  bool traced = false;       ///< true if the trace, where there is one, records this step
};

/// Sums over the batches of a step.
struct BatchReport {
  double loss_sum = 0;  ///< loss times examples
  uint64_t correct = 0;
  uint64_t examples = 0;
};

/// Times of an exchange, in seconds, as the training thread saw them. No part counts twice. All but
/// early_push pass inside finish().
struct Spent {
  double early_push = 0;  ///< sending gradients inside ready(), while others are still computed
  double push = 0;        ///< sending the rest of the gradients
  double pull = 0;        ///< waiting for a server's answer, without the server's own waiting for other workers
  double transfer = 0;    ///< operations of the group, without waiting for other members
  double others = 0;      ///< waiting for other members
  double optimizer = 0;   ///< updating parameters in this process
};

/// Outcome of a step.
enum class StepOutcome : uint8_t {
  applied,  ///< the gradients are in the parameters
  retry,    ///< the gradients were dropped: too late, or the group broke. The batch is repeated unless a plan says
            ///< otherwise
  ended,    ///< training ends before this step: no member applies it
  missed    ///< training ended without this process
};

/// The end of training, for everyone.
struct Stop {
  train::StopReason reason = train::StopReason::none;
  std::string by = {};  ///< first process that asked for it: "worker:1"; empty: unknown
};

struct StepInfo {
  uint64_t step = 0;  ///< updates made so far, this one included
  float learning_rate = 0;
  float gradient_norm = 0;  ///< before clipping; NaN unless clipping asked for it
  StepOutcome outcome = StepOutcome::applied;
  std::optional<Stop> stop;        ///< set: every process ends after this step
  std::optional<data::Plan> plan;  ///< data from the next batch on
  int64_t batches_per_step = 0;    ///< batches of `plan` that make a step; 0: as configured
  BatchReport group;               ///< sums over all gradients in the update
  uint64_t examples_total = 0;     ///< examples of all since the start of training; 0: this process's own
  uint64_t staleness = 0;          ///< updates by others since these parameters were received
  double wait_seconds = 0;         ///< time spent in finish()
  Spent spent;
  std::chrono::steady_clock::time_point entered;  ///< start of finish(), from which `spent` counts

  [[nodiscard]] bool applied() const { return outcome == StepOutcome::applied; }
  /// Returns the reason for the end of training, or none if training goes on.
  [[nodiscard]] train::StopReason stop_reason() const { return stop ? stop->reason : train::StopReason::none; }
};

/// A complete training state, for a checkpoint. The spans are valid until the next call.
struct Snapshot {
  uint64_t step = 0;
  std::span<const float> parameters;
  std::vector<optim::StateSlot> slots;
  /// Progress of the whole group. Absent if the trainer itself knows it.
  struct Progress {
    uint64_t examples = 0;
    data::Remainder data;
  };
  std::optional<Progress> progress;
};

/// The reason why a process leaves, and its last evaluation.
struct Farewell {
  train::StopReason reason = train::StopReason::none;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< loss of its own evaluation
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

/// The end of a training that finished without this process.
struct Ending {
  train::StopReason reason = train::StopReason::none;
  uint64_t step = 0;
};
/// Looks for signs that training has ended; used when the others cannot be reached. Returns nothing if there are none.
using LookForEnding = std::function<std::optional<Ending>()>;

class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Joins the group: brings the parameters up to date and returns the group's state. A single process returns nothing.
  virtual base::Result<std::optional<StepInfo>> join() { return std::optional<StepInfo>(); }

  /// Tells which thread of this process writes which runs of the gradients, so that it may update them, too. Changes
  /// no result.
  virtual void divide_updates(const std::vector<base::Shares>& /*by_thread*/) {}

  virtual void begin(const StepStart& start) = 0;
  /// Announces that the gradients of `range` are final once `event` has happened.
  virtual void ready(program::ParameterRange range, Event event) = 0;
  /// Waits until the parameters are updated.
  virtual base::Result<StepInfo> finish(const BatchReport& report) = 0;

  /// Leaves, out of data (`data`, `epochs`) or because of a rule that ends training, and waits until training ends for
  /// all. Then the parameters are the final ones. If others left work behind, returns a plan for it instead.
  virtual base::Result<std::optional<StepInfo>> leave(const Farewell& farewell) {
    static_cast<void>(farewell);
    return std::optional<StepInfo>();
  }

  /// True if this process evaluates, writes checkpoints and ends the run for all. May change when a plan arrives.
  [[nodiscard]] virtual bool leads() const { return true; }
  /// Called when a checkpoint of the latest snapshot is durable.
  virtual void saved() {}

  /// Names of the optimizer's state, in order.
  [[nodiscard]] virtual std::vector<std::string> slot_names() const = 0;
  /// The optimizer's state held by this process, to be set before training; empty where servers hold it.
  virtual std::vector<optim::StateSlot> state() { return {}; }
  /// Returns the complete state at one version, and brings the parameters to that version.
  virtual base::Result<Snapshot> snapshot() = 0;
};

}  // namespace lockstep::exchange
