// The hook that writes a run's steps.csv (every `log-every` steps) and evals.csv. Lines reach the disk at evaluations,
// checkpoints, the end and about every second; logging a step allocates nothing.
#pragma once

#include <cstdint>

#include "base/csv_file.h"
#include "lockstep/train_events.h"
#include "run/run_directory.h"

namespace lockstep::run {

class RunLog final : public train::Hooks {
 public:
  static constexpr std::string_view kStepsHeader =
      "step,epoch,seconds,loss,accuracy,learning_rate,examples_per_second,seconds_per_step";
  static constexpr std::string_view kEvalsHeader = "step,epoch,seconds,loss,accuracy,examples,eval_seconds,best";

  /// A moment of the training; rates are computed from it.
  struct Mark {
    uint64_t step = 0;
    uint64_t examples = 0;
    double seconds = 0;
    double aside_seconds = 0;
  };

  /// Limits up to which existing lines are kept.
  struct Kept {
    uint64_t step = 0;
    uint64_t evaluated = 0;
  };

  /// A resumed run continues after `step`; later lines are dropped.
  RunLog(const RunDirectory& run, uint64_t log_every, bool resumed = false, uint64_t step = 0);
  RunLog(const RunDirectory& run, uint64_t log_every, Kept kept);

  /// Continues after `step` and that many examples: drops later lines.
  void go_back(uint64_t step, uint64_t examples);
  /// Computes the next line's rates from this mark.
  void go_on_from(const Mark& mark);

  void on_start(const train::StartEvent& event) override;
  void on_step(const train::StepEvent& event) override;
  void on_eval(const train::EvalEvent& event) override;
  void before_checkpoint() override;
  void on_end(const train::Outcome& outcome) override;

  void flush();

 private:
  base::CsvFile steps_;
  base::CsvFile evals_;
  uint64_t log_every_;
  double last_seconds_ = 0;  ///< when the last line was written, and the examples seen by then
  double last_aside_ = 0;
  uint64_t last_examples_ = 0;
  uint64_t last_step_ = 0;
  double last_flush_ = 0;
  bool has_accuracy_ = true;
};

}  // namespace lockstep::run
