// Events of a training run, its outcome, and the hooks that are told of them: plain values that every room from
// checkpoints up to the command line shares. `lockstep/train.h` includes them. Hooks are called on the training thread,
// in the order given, and are borrowed: they must outlive the run. An exception of a hook ends the run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/run_types.h"

namespace lockstep::train {

/// Training time: what earlier parts of a resumed run took, plus the time since this part began.
class RunClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RunClock(double seconds_before = 0) : before_(seconds_before), start_(Clock::now()) {}

  [[nodiscard]] double seconds() const { return before_ + seconds_here(); }
  /// Of this process alone.
  [[nodiscard]] double seconds_here() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double before_;
  Clock::time_point start_;
};

/// What training is about to do. Limits that are not set are 0.
struct StartEvent {
  std::string model;
  std::string dataset;
  std::string data_origin;  ///< where the data was found or how it was made, for people
  std::string run_dir;      ///< empty: none is kept
  size_t parameters = 0;
  bool has_accuracy = true;  ///< false for models whose answers are neither right nor wrong
  int64_t train_examples = 0;
  int64_t batch = 0;       ///< per micro-batch
  int64_t accumulate = 1;  ///< micro-batches per step
  uint64_t steps_per_epoch = 0;
  uint64_t total_steps = 0;  ///< where --steps, --epochs or --repeat end it; 0: unknown
  double limit_seconds = 0;
  uint64_t first_step = 0;  ///< steps made and examples seen before: not 0 when resumed
  uint64_t first_examples = 0;
  double first_aside_seconds = 0;  ///< as in StepEvent
  int threads = 1;
  const RunClock* clock = nullptr;
};

/// One update of the parameters. Cheap: it is made at every step.
struct StepEvent {
  uint64_t step = 0;    ///< updates made so far, this one included
  int64_t epoch = 0;    ///< the epoch the step belongs to, from 1
  float loss = 0;       ///< mean over the step's examples
  int64_t correct = 0;  ///< of the step's examples; 0 for models without accuracy
  int64_t examples = 0;
  uint64_t examples_total = 0;  ///< since the start of training
  float learning_rate = 0;
  float gradient_norm = 0;   ///< NaN unless clipping computes it
  double aside_seconds = 0;  ///< of the clock's seconds: evaluations, their pictures and checkpoints so far
  uint64_t staleness = 0;    ///< updates by other workers since the parameters came
  double wait_seconds = 0;   ///< what exchanging gradients for parameters took
  PhaseSeconds phases = {};  ///< of this process, since the step before
  const RunClock* clock = nullptr;

  [[nodiscard]] double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }
};

struct EvalEvent {
  uint64_t step = 0;
  int64_t epoch = 0;    ///< as in StepEvent
  double loss = 0;      ///< mean over the split
  double accuracy = 0;  ///< 0 to 1; NaN for models without
  int64_t examples = 0;
  bool best = false;        ///< better than every evaluation before
  double seconds = 0;       ///< training time
  double eval_seconds = 0;  ///< what the evaluation took
};

struct CheckpointEvent {
  uint64_t step = 0;
  std::string file;
  size_t bytes = 0;
  double seconds = 0;  ///< what writing took
  bool best = false;
};

/// What a worker of a cluster did.
struct WorkerRecord {
  std::string role;         ///< "worker:1"
  uint64_t iterations = 0;  ///< batches that counted
  uint64_t examples = 0;
  uint64_t updates = 0;  ///< that its gradients are in
  uint64_t dropped = 0;  ///< gradients that came too late
  uint64_t restarts = 0;
  double finished_seconds = 0;      ///< since the start of training
  std::vector<uint64_t> staleness;  ///< how many of its updates had staleness 0, 1, 2, ...; the last: that or more
  double staleness_mean = 0;
  uint64_t staleness_max = 0;
  double wait_share = 0;       ///< of its time, waiting for parameters or for the others
  double load_seconds = 0;     ///< of all-reduce: waiting for data,
  double compute_seconds = 0;  ///< and computing
  double loss = 0;             ///< evaluated with what it had at its end; NaN: it was not
  double accuracy = 0;
};

/// What exchanging gradients by all-reduce cost, as the one who led saw it.
struct CommunicationRecord {
  std::string engine;  ///< "gloo"; empty: there was none
  uint64_t buckets = 0;
  uint64_t bucket_bytes = 0;
  uint64_t groups = 0;          ///< 1, and one more for each time that members came or went
  double bytes_per_step = 0;    ///< sent by this process
  double transfer_seconds = 0;  ///< in operations of the group
  double wait_seconds = 0;      ///< of these, while nothing was left to compute
  double overlapped = 0;        ///< share of the transfer that was hidden behind computing
};

struct Outcome {
  std::string run_dir;
  StopReason reason = StopReason::none;
  bool already_finished = false;  ///< a resumed run had nothing left to do
  uint64_t steps = 0;
  int64_t epochs = 0;  ///< completed
  uint64_t examples = 0;
  double seconds = 0;
  double aside_seconds = 0;        ///< of `seconds`: evaluations, their pictures and checkpoints
  double examples_per_second = 0;  ///< without the time aside
  double train_loss = 0;           ///< mean over the examples of the latest epoch
  double train_accuracy = 0;       ///< NaN for models without
  std::optional<EvalEvent> last_eval;
  std::optional<EvalEvent> best_eval;
  size_t parameters = 0;
  uint64_t peak_memory_bytes = 0;
  std::vector<WorkerRecord> workers;  ///< of a cluster, from its chief
  std::vector<PhaseRecord> phases;    ///< of this process, those that took time
  CommunicationRecord communication;
  std::vector<std::string> stragglers;  ///< who was slow, since when, by how much and why; for people
  std::string pictures;                 ///< the folder of what the model shows at evaluations; empty: it shows nothing
};

class Hooks {
 public:
  virtual ~Hooks() = default;

  virtual void on_start(const StartEvent& /*event*/) {}
  virtual void on_step(const StepEvent& /*event*/) {}
  virtual void on_eval(const EvalEvent& /*event*/) {}
  /// After the checkpoint is durable; `before_checkpoint` comes first, so that logs reach at least as far.
  virtual void before_checkpoint() {}
  virtual void on_checkpoint(const CheckpointEvent& /*event*/) {}
  /// However it ended, errors included.
  virtual void on_end(const Outcome& /*outcome*/) {}
};

}  // namespace lockstep::train
