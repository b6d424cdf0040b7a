// Events of a training run, its outcome, and the hooks that receive them: plain values that every room from
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

/// Training time: the time of earlier parts of a resumed run, plus the time since this part began.
class RunClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RunClock(double seconds_before = 0) : before_(seconds_before), start_(Clock::now()) {}

  [[nodiscard]] double seconds() const { return before_ + seconds_here(); }
  /// Returns the seconds of this process alone.
  [[nodiscard]] double seconds_here() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double before_;
  Clock::time_point start_;
};

/// The training that is about to start. Limits that are not set are 0.
struct StartEvent {
  std::string model;
  std::string dataset;
  std::string data_origin;  ///< place the data was found, or how it was made; for people
  std::string run_dir;      ///< empty: no run folder is kept
  size_t parameters = 0;
  bool has_accuracy = true;  ///< false for models without right and wrong answers
  int64_t train_examples = 0;
  int64_t batch = 0;       ///< per micro-batch
  int64_t accumulate = 1;  ///< micro-batches per step
  uint64_t steps_per_epoch = 0;
  uint64_t total_steps = 0;  ///< the end set by --steps, --epochs or --repeat; 0: unknown. Steps tell it anew
  double limit_seconds = 0;
  uint64_t first_step = 0;  ///< steps made and examples seen before this part; not 0 after a resume
  uint64_t first_examples = 0;
  double first_aside_seconds = 0;  ///< as in StepEvent
  int threads = 1;
  const RunClock* clock = nullptr;
};

/// One update of the parameters. Cheap to make: every step makes one.
struct StepEvent {
  uint64_t step = 0;            ///< updates made so far, this one included
  uint64_t total_steps = 0;     ///< as in StartEvent, for the members that train now: fewer members make more steps
  int64_t epoch = 0;            ///< the epoch the step belongs to, from 1
  float loss = 0;               ///< mean over the step's examples
  int64_t correct = 0;          ///< right answers among the step's examples; 0 for models without accuracy
  int64_t examples = 0;         ///< in the update, of all workers whose gradients it takes
  int64_t own_examples = 0;     ///< examples of this process in the update
  uint64_t examples_total = 0;  ///< since the start of training
  float learning_rate = 0;
  float gradient_norm = 0;  ///< NaN unless clipping computes it
  double aside_seconds =
      0;  ///< the part of the clock's seconds spent so far on evaluations, their pictures and checkpoints
  uint64_t staleness = 0;    ///< updates by other workers since this worker received its parameters
  double wait_seconds = 0;   ///< time spent exchanging gradients for parameters
  PhaseSeconds phases = {};  ///< phases of this process, since the step before
  const RunClock* clock = nullptr;

  [[nodiscard]] double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }
};

struct EvalEvent {
  uint64_t step = 0;
  int64_t epoch = 0;    ///< as in StepEvent
  double loss = 0;      ///< mean over the split
  double accuracy = 0;  ///< 0 to 1; NaN for models without accuracy
  int64_t examples = 0;
  bool best = false;        ///< better than every evaluation before
  double seconds = 0;       ///< training time
  double eval_seconds = 0;  ///< duration of the evaluation
};

struct CheckpointEvent {
  uint64_t step = 0;
  std::string file;
  size_t bytes = 0;
  double seconds = 0;  ///< duration of the write
  bool best = false;
};

/// The work of one worker of a cluster.
struct WorkerRecord {
  std::string role;         ///< "worker:1"
  uint64_t iterations = 0;  ///< batches that were applied
  uint64_t examples = 0;
  uint64_t updates = 0;  ///< updates that contain its gradients
  uint64_t dropped = 0;  ///< gradients that arrived too late
  uint64_t restarts = 0;
  double finished_seconds = 0;      ///< since the start of training
  std::vector<uint64_t> staleness;  ///< number of updates with staleness 0, 1, 2, ...; the last entry: that or more
  double staleness_mean = 0;
  uint64_t staleness_max = 0;
  double wait_share = 0;       ///< share of its time spent waiting for parameters or other members
  double load_seconds = 0;     ///< all-reduce: time waiting for data
  double compute_seconds = 0;  ///< all-reduce: time computing
  double loss = 0;             ///< evaluated with the parameters it had when it ended; NaN: not evaluated
  double accuracy = 0;
};

/// The cost of exchanging gradients by all-reduce, as the leader saw it.
struct CommunicationRecord {
  std::string engine;  ///< "gloo"; empty: no all-reduce
  uint64_t buckets = 0;
  uint64_t bucket_bytes = 0;
  uint64_t group = 0;           ///< number of the latest group; numbers rise
  uint64_t groups = 0;          ///< 1, plus one for each time that members joined or left
  double bytes_per_step = 0;    ///< sent by this process
  double transfer_seconds = 0;  ///< spent in operations of the group
  double wait_seconds = 0;      ///< part of transfer_seconds with nothing left to compute
  double overlapped = 0;        ///< share of the transfer hidden behind computing
};

struct Outcome {
  std::string run_dir;
  StopReason reason = StopReason::none;
  bool already_finished = false;  ///< true if a resumed run had nothing left to do
  uint64_t steps = 0;
  int64_t epochs = 0;  ///< completed
  uint64_t examples = 0;
  double seconds = 0;
  double aside_seconds = 0;        ///< part of `seconds` spent on evaluations, their pictures and checkpoints
  double examples_per_second = 0;  ///< without aside_seconds
  double train_loss = 0;           ///< mean over the examples of the latest epoch
  double train_accuracy = 0;       ///< NaN for models without accuracy
  std::optional<EvalEvent> last_eval;
  std::optional<EvalEvent> best_eval;
  size_t parameters = 0;
  /// Peak memory of this process; of the training where there was nothing left to do. 0: not known.
  uint64_t peak_memory_bytes = 0;
  std::string role;                   ///< role of this process: "worker:0"; empty: it trains alone
  std::vector<WorkerRecord> workers;  ///< workers of a cluster, as its chief reports them
  std::vector<PhaseRecord> phases;    ///< phases of this process that took time
  CommunicationRecord communication;
  std::vector<std::string> stragglers;  ///< slow members, since when, by how much and why; for people
  std::string pictures;                 ///< folder of the pictures drawn at evaluations; empty: the model draws none
};

class Hooks {
 public:
  virtual ~Hooks() = default;

  virtual void on_start(const StartEvent& /*event*/) {}
  virtual void on_step(const StepEvent& /*event*/) {}
  virtual void on_eval(const EvalEvent& /*event*/) {}
  /// Called after the checkpoint is durable. `before_checkpoint` is called first, so that logs reach at least as far.
  virtual void before_checkpoint() {}
  virtual void on_checkpoint(const CheckpointEvent& /*event*/) {}
  /// Called when a run ends, also after an error.
  virtual void on_end(const Outcome& /*outcome*/) {}
};

}  // namespace lockstep::train
