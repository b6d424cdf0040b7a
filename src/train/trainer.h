// The training loop: next batch -> program -> exchange -> parameters, and between steps the hooks, evaluation, stop
// rules and checkpoints. It knows neither files nor flags: it borrows all it needs (Parts), which must outlive it. One
// thread runs it; the loader has its own thread. After the first step of each batch size a step allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/training_state.h"
#include "data/loader.h"
#include "exchange/exchange.h"
#include "lockstep/error.h"
#include "lockstep/train_events.h"
#include "program/parameters.h"
#include "train/evaluator.h"
#include "train/programs.h"
#include "train/step_trace.h"
#include "train/stop_rules.h"

namespace lockstep::train {

/// Saves the state; the trainer decides when.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  /// An event without a file: it is not kept, because another group has gone on.
  virtual CheckpointEvent save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) = 0;
  /// Called when this process becomes the leader: takes over the former leader's record of evaluations.
  virtual void take_over(checkpoint::TrainingState& /*state*/) {}
};

struct Parts {
  program::ParameterStore* parameters = nullptr;
  Programs* programs = nullptr;      ///< programs for training
  std::span<float> micro_gradients;  ///< output of the programs when accumulating, one value per parameter
  exchange::Exchange* exchange = nullptr;
  data::Loader* loader = nullptr;
  Evaluator* evaluator = nullptr;        ///< may be absent
  Checkpointer* checkpointer = nullptr;  ///< may be absent
  std::vector<Hooks*> hooks;
  const std::atomic<bool>* interrupt = nullptr;  ///< may be absent
  base::TraceTrack* trace = nullptr;             ///< track of the training thread; may be absent
};

struct TrainerOptions {
  StopRules stop;
  uint64_t seed = 1;
  int64_t accumulate = 1;
  uint64_t eval_every = 0;  ///< interval in steps; 0: only at the end of each epoch
  /// interval in steps; 0: at the end of each epoch. Each best evaluation is saved, too
  uint64_t checkpoint_every = 0;
  int threads = 1;
  bool evaluates_at_the_end_only = false;  ///< after its own share; others evaluate earlier
  bool epoch_is_pass = true;               ///< otherwise a fixed number of steps
  std::string who;                         ///< " on worker:1", for errors; empty for one process
  std::optional<uint64_t> trace_steps;     ///< number of steps to trace, 0: all; absent: another thread decides
  uint64_t total_steps = 0;                ///< as in StartEvent
  /// Returns the total if the data of a plan is left after `step` updates; absent if the members do not matter.
  std::function<uint64_t(const data::Plan& plan, uint64_t step)> total_of_plan;
};

class Trainer {
 public:
  Trainer(Parts parts, TrainerOptions options, checkpoint::TrainingState state = {});

  /// Trains until a rule stops it. Throws NonFiniteError, and the exceptions of its parts. Hooks get on_step, on_eval
  /// and on_checkpoint; the caller calls on_start and on_end.
  StopReason run(const RunClock& clock);

  [[nodiscard]] const checkpoint::TrainingState& state() const { return state_; }
  /// Returns the time per phase since the last step that hooks saw; after run(), the end of training.
  [[nodiscard]] const PhaseSeconds& phases_since() {
    close_phases();
    return phases_;
  }

 private:
  using Clock = RunClock::Clock;

  /// The result of one update.
  struct StepResult {
    double loss_sum = 0;  ///< sum of loss times examples
    int64_t correct = 0;
    int64_t examples = 0;
    int64_t epoch = 0;
    bool last_in_epoch = false;
    exchange::StepInfo info;
  };

  /// Continues from the group's state.
  void follow(const exchange::StepInfo& info);
  void take_plan(const exchange::StepInfo& info);
  /// Trains until a rule stops it or the data runs out.
  StopReason train_share(const RunClock& clock);
  /// Leaves the training; returns true if there is more work to do.
  bool leave(StopReason reason, const RunClock& clock);
  /// Makes the last evaluation and checkpoint.
  StopReason close(StopReason reason, const RunClock& clock);
  /// Returns true if this process leads: it writes the checkpoints, including the final one.
  [[nodiscard]] bool leads() const;
  /// Takes over if this process has become the leader.
  void notice_leadership();
  /// Tells the exchange that a step begins.
  void begin(uint64_t examples, int64_t batches, double load_seconds);
  /// Returns the dropped batch, or the next one; null if the data has run out.
  const data::Batch* next_batch();
  /// Makes one update; returns false if the data has run out.
  bool step(StepResult& result);
  bool accumulated_step(StepResult& result);
  void add_micro_batch(int64_t count, int64_t first_count, float scale);
  /// Runs the program on a batch and adds its loss and number of right answers to the result.
  void run_batch(const data::Batch& batch, int64_t first_row, StepResult& result);
  void finish_update(StepResult& result);
  void account(const StepResult& result);
  void tell_step(const StepResult& result, const RunClock& clock);
  void spend(Phase phase, double seconds) { phases_[static_cast<size_t>(phase)] += seconds; }
  void spend(const exchange::Spent& spent);
  /// Adjusts the phases to add up to the time passed until `ended_`. Returns its beginning.
  Clock::time_point close_phases();
  StopReason between_steps(const StepResult& result, uint64_t step_before, const RunClock& clock);
  /// Brings parameters and state to one version of the whole group, for an evaluation or checkpoint, and adds the time
  /// to that phase. Returns false if this is not possible now.
  bool take_snapshot(Phase phase);
  /// Returns the epoch of the latest step, from 1.
  [[nodiscard]] int64_t epoch() const;
  /// Returns true if the current parameters have been evaluated and are better than those of every checkpoint.
  [[nodiscard]] bool evaluated_here() const;
  [[nodiscard]] bool best_so_far() const;
  void evaluate(const RunClock& clock);
  void checkpoint(const RunClock& clock);

  Parts parts_;
  TrainerOptions options_;
  checkpoint::TrainingState state_;
  uint64_t saved_step_ = 0;  ///< step of the newest checkpoint
  double aside_told_ = 0;    ///< part of the seconds aside that the exchange knows
  int64_t batches_per_step_ = 1;
  const data::Batch* dropped_ = nullptr;  ///< batch to compute again, on newer parameters
  exchange::Snapshot snapshot_;
  StopReason group_stop_ = StopReason::none;
  bool missed_end_ = false;  ///< the group ended without this process
  bool led_ = false;
  bool divided_ = false;      ///< the exchange knows which thread writes which gradients
  PhaseSeconds phases_ = {};  ///< time per phase since hooks last saw a step
  double closed_ = 0;         ///< part of it before `ended_`
  Clock::time_point ended_;   ///< end of the previous step
  StepTrace trace_;
};

}  // namespace lockstep::train
