// How gradients meet. An Exchange owns the optimizer and turns this process's gradients into updated parameters; it
// is the only thing that differs between one process, all-reduce and a parameter server, and the trainer does not
// know which one it has. One training thread calls it; implementations may use threads of their own.
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

/// When the memory of an announced range may be read. On a CPU that is at once; a GPU backend puts its event here.
struct Event {};

struct StepStart {
  uint64_t step = 0;         ///< updates made before this one
  uint64_t examples = 0;     ///< behind the gradients of this process: their weight in an average
  int64_t batches = 1;       ///< of the data plan that they come from
  double load_seconds = 0;   ///< spent waiting for these batches
  double aside_seconds = 0;  ///< spent on an evaluation or a checkpoint since the last step
  bool traced = false;       ///< it goes into the trace, where there is one
};

/// What the batches of a step showed.
struct BatchReport {
  double loss_sum = 0;  ///< loss times examples
  uint64_t correct = 0;
  uint64_t examples = 0;
};

/// Where the time of an exchange went, in seconds, as the training thread saw it; no part counts twice.
struct Spent {
  double early_push = 0;  ///< in ready(): sending gradients while others were still computed
  double push = 0;        ///< in finish(), as the following: sending the rest,
  double pull = 0;        ///< waiting for a server's answer, without what it waited for others,
  double transfer = 0;    ///< in operations of the group, without what it waited for others,
  double others = 0;      ///< waiting for other members,
  double optimizer = 0;   ///< updating parameters in this process
};

/// What became of a step.
enum class StepOutcome : uint8_t {
  applied,  ///< the gradients are in the parameters
  retry,    ///< the gradients were dropped: too late, or the group broke. The same batch comes again unless a plan says
            ///< otherwise
  ended,    ///< training ends before this step: nobody applies it
  missed    ///< training has ended without this process
};

/// The end of training, for everyone.
struct Stop {
  train::StopReason reason = train::StopReason::none;
  std::string by = {};  ///< the first who asked for it: "worker:1"; empty: unknown
};

struct StepInfo {
  uint64_t step = 0;  ///< updates made so far, this one included
  float learning_rate = 0;
  float gradient_norm = 0;  ///< before clipping; NaN unless clipping asked for it
  StepOutcome outcome = StepOutcome::applied;
  std::optional<Stop> stop;        ///< everyone ends after this step
  std::optional<data::Plan> plan;  ///< the data from the next batch on
  int64_t batches_per_step = 0;    ///< with a plan: how many of its batches make a step; 0: as set
  BatchReport group;               ///< of all whose gradients are in the update
  uint64_t examples_total = 0;     ///< of everyone since the start of training; 0: those of this process
  uint64_t staleness = 0;          ///< updates by others since the parameters came
  double wait_seconds = 0;         ///< spent in finish()
  Spent spent;
  std::chrono::steady_clock::time_point entered;  ///< when finish() began, and with it what was spent there

  [[nodiscard]] bool applied() const { return outcome == StepOutcome::applied; }
  /// Why everyone ends; none: they do not.
  [[nodiscard]] train::StopReason stop_reason() const { return stop ? stop->reason : train::StopReason::none; }
};

/// A whole state of the training, for a checkpoint. The spans live until the next call.
struct Snapshot {
  uint64_t step = 0;
  std::span<const float> parameters;
  std::vector<optim::StateSlot> slots;
  /// How far the group is, where its members do not know it all themselves; absent where the trainer does.
  struct Progress {
    uint64_t examples = 0;
    data::Remainder data;
  };
  std::optional<Progress> progress;
};

/// Why a process ends taking part, and what it found last.
struct Farewell {
  train::StopReason reason = train::StopReason::none;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of its own evaluation
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

/// How a training ended that this process had no part in at its end.
struct Ending {
  train::StopReason reason = train::StopReason::none;
  uint64_t step = 0;
};
/// Looks for signs that training has ended, for one who cannot reach the others; nothing: there are none.
using LookForEnding = std::function<std::optional<Ending>()>;

class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Takes part: brings the parameters up to date and says where the group is. Nothing to tell for one process.
  virtual base::Result<std::optional<StepInfo>> join() { return std::optional<StepInfo>(); }

  virtual void begin(const StepStart& start) = 0;
  /// The gradients of `range` are final once `event` has happened.
  virtual void ready(program::ParameterRange range, Event event) = 0;
  /// Waits until the parameters are updated.
  virtual base::Result<StepInfo> finish(const BatchReport& report) = 0;

  /// Ends taking part, as one that is out of data (`data`, `epochs`) or met a rule that ends all, and waits for the end
  /// of all. Then the parameters are the final ones; or there is work that others left, and the info has a plan for it.
  virtual base::Result<std::optional<StepInfo>> leave(const Farewell& farewell) {
    static_cast<void>(farewell);
    return std::optional<StepInfo>();
  }

  /// Whether this process evaluates, writes checkpoints and closes for all. May change when a plan comes.
  [[nodiscard]] virtual bool leads() const { return true; }
  /// A checkpoint of the latest snapshot is durable.
  virtual void saved() {}

  /// The names of the optimizer's state, in order.
  [[nodiscard]] virtual std::vector<std::string> slot_names() const = 0;
  /// The optimizer's state where this process holds it, to be set before training; empty where servers do.
  virtual std::vector<optim::StateSlot> state() { return {}; }
  /// The whole state at one version, which the parameters are brought to.
  virtual base::Result<Snapshot> snapshot() = 0;
};

}  // namespace lockstep::exchange
