// The training loop: next batch -> program -> exchange -> parameters, and between steps the hooks, evaluation, stop
// rules and checkpoints. It knows neither files nor flags: what it needs is given and borrowed (Parts), and must
// outlive it. One thread runs it; the loader has a thread of its own. After the first step of each batch size a step
// allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/training_state.h"
#include "data/loader.h"
#include "exchange/exchange.h"
#include "lockstep/error.h"
#include "lockstep/train.h"
#include "program/parameters.h"
#include "train/evaluator.h"
#include "train/programs.h"
#include "train/step_trace.h"
#include "train/stop_rules.h"

namespace lockstep::train {

/// Takes the state to a durable place; the trainer says when.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  virtual CheckpointEvent save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) = 0;
  /// This process saves from now on in place of another: takes over what that one knew of evaluations.
  virtual void take_over(checkpoint::TrainingState& /*state*/) {}
};

struct Parts {
  program::ParameterStore* parameters = nullptr;
  Programs* programs = nullptr;      ///< for training
  std::span<float> micro_gradients;  ///< when accumulating: where the programs write, one value per parameter
  exchange::Exchange* exchange = nullptr;
  data::Loader* loader = nullptr;
  Evaluator* evaluator = nullptr;        ///< may be absent
  Checkpointer* checkpointer = nullptr;  ///< may be absent
  std::vector<Hooks*> hooks;
  const std::atomic<bool>* interrupt = nullptr;  ///< may be absent
  base::TraceTrack* trace = nullptr;             ///< of the training thread; may be absent
};

struct TrainerOptions {
  StopRules stop;
  uint64_t seed = 1;
  int64_t accumulate = 1;
  uint64_t eval_every = 0;        ///< steps; 0: at the end of each epoch only
  uint64_t checkpoint_every = 0;  ///< steps; 0: at the end of each epoch; besides, each best evaluation is saved
  int threads = 1;
  bool evaluates_at_the_end_only = false;  ///< of its own share: someone else evaluates while training goes on
  bool epoch_is_pass = true;               ///< else it is a fixed number of steps
  std::string who;                         ///< " on worker:1", for errors; empty for one process
  std::optional<uint64_t> trace_steps;     ///< how many are traced, 0: all; absent: as another thread says
};

class Trainer {
 public:
  Trainer(Parts parts, TrainerOptions options, checkpoint::TrainingState state = {});

  /// Trains until a rule stops it. Throws NonFiniteError, and what parts throw. Hooks see on_step, on_eval and
  /// on_checkpoint; on_start and on_end are the caller's.
  StopReason run(const RunClock& clock);

  [[nodiscard]] const checkpoint::TrainingState& state() const { return state_; }
  /// Where the time since the last step that hooks saw has gone: after run(), the end of training.
  [[nodiscard]] const PhaseSeconds& phases_since() {
    close_phases();
    return phases_;
  }

 private:
  using Clock = RunClock::Clock;

  /// What one update did.
  struct StepResult {
    double loss_sum = 0;  ///< loss times examples
    int64_t correct = 0;
    int64_t examples = 0;
    int64_t epoch = 0;
    bool last_in_epoch = false;
    exchange::StepInfo info;
  };

  /// Goes on where the exchange says that the group is.
  void follow(const exchange::StepInfo& info);
  void take_plan(const exchange::StepInfo& info);
  /// Trains until a rule stops it or the data has run out.
  StopReason train_share(const RunClock& clock);
  /// Ends taking part; true: there is work left to go on with.
  bool leave(StopReason reason, const RunClock& clock);
  /// The last evaluation and checkpoint.
  StopReason close(StopReason reason, const RunClock& clock);
  /// Whether this process writes checkpoints and closes for all.
  [[nodiscard]] bool leads() const;
  /// Notices that it has come to lead.
  void look_who_leads();
  /// Tells the exchange that a step begins.
  void begin(uint64_t examples, int64_t batches, double load_seconds);
  /// The batch that was dropped, or the next one; null where the data has run out.
  const data::Batch* next_batch();
  /// One update; false where the data has run out.
  bool step(StepResult& result);
  bool accumulated_step(StepResult& result);
  void add_micro_batch(int64_t count, int64_t first_count, float scale);
  /// Runs the program on a batch and adds its loss and count of right answers to the result.
  void run_batch(const data::Batch& batch, int64_t first_row, StepResult& result);
  void finish_update(StepResult& result);
  void account(const StepResult& result);
  void tell_step(const StepResult& result, const RunClock& clock);
  void spend(Phase phase, double seconds) { phases_[static_cast<size_t>(phase)] += seconds; }
  void spend(const exchange::Spent& spent);
  /// Makes the phases add up to the time that has passed, of which `ended_` is the end. Gives where it began.
  Clock::time_point close_phases();
  StopReason between_steps(const StepResult& result, uint64_t step_before, const RunClock& clock);
  /// Brings parameters and state to one version of the whole group, for evaluation and checkpoint, which its
  /// time counts as; false: not now.
  bool take_snapshot(Phase phase);
  /// The epoch the latest step belongs to, from 1.
  [[nodiscard]] int64_t epoch() const;
  /// Whether the parameters as they are have been evaluated, and are then better than those of every checkpoint.
  [[nodiscard]] bool evaluated_here() const;
  [[nodiscard]] bool best_so_far() const;
  void evaluate(const RunClock& clock);
  void checkpoint(const RunClock& clock);

  Parts parts_;
  TrainerOptions options_;
  checkpoint::TrainingState state_;
  uint64_t saved_step_ = 0;  ///< of the newest checkpoint
  double aside_told_ = 0;    ///< of the seconds aside, what the exchange knows
  int64_t batches_per_step_ = 1;
  const data::Batch* dropped_ = nullptr;  ///< to be computed again, on newer parameters
  exchange::Snapshot snapshot_;
  StopReason group_stop_ = StopReason::none;
  bool missed_end_ = false;  ///< the group ended without this process
  bool led_ = false;
  PhaseSeconds phases_ = {};  ///< since hooks were told of a step
  double closed_ = 0;         ///< of these, what lies before `ended_`
  Clock::time_point ended_;   ///< the end of the step before
  StepTrace trace_;
};

}  // namespace lockstep::train
