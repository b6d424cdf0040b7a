// The hook that records a training: scalars, histograms, pictures and the graph for TensorBoard, phases.csv, figures
// for Prometheus. It borrows the parameters. For the training thread; other threads ask for figures.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/csv_file.h"
#include "lockstep/train_events.h"
#include "observe/phases.h"
#include "program/parameters.h"
#include "run/observation.h"
#include "train/pace.h"
#include "train/pictures.h"

namespace lockstep::train {

/// Parts of the training to show besides numbers.
struct Shown {
  const program::ParameterStore* parameters = nullptr;  ///< borrowed
  std::function<graph::Graph()> graph;                  ///< graph of a training step
  observe::Devices devices;
  bool compares_runs = true;  ///< this role stands for the run in the HParams tab
};

class TrainingObserver final : public Hooks {
 public:
  TrainingObserver(const settings::Settings& settings, run::ObservedRole role, Shown shown);

  void on_start(const StartEvent& event) override;
  void on_step(const StepEvent& event) override;
  void on_eval(const EvalEvent& event) override;
  void on_checkpoint(const CheckpointEvent& event) override;
  void on_end(const Outcome& outcome) override;

  /// Returns true if pictures are wanted; `show` takes one.
  [[nodiscard]] bool shows() { return observation_.summaries() != nullptr; }
  void show(const std::string& name, uint64_t step, const EncodedPicture& picture);
  /// Notes the group of members that makes the steps from now on.
  void group(uint64_t number, uint64_t step);
  /// Adds the time after the last step.
  void add_end(const PhaseSeconds& phases);
  [[nodiscard]] std::vector<PhaseRecord> phases() const { return phases_.records(); }
  /// Stops observing resources and returns their summary.
  std::optional<observe::ResourceSummary> stop() { return observation_.stop(); }

 private:
  /// Sums since the last summary, or the last line of phases.csv.
  struct Since {
    uint64_t step = 0;
    uint64_t own_steps = 0;
    uint64_t examples = 0;
    double seconds = 0;
    double aside = 0;
    double waited = 0;
    PhaseSeconds phases = {};

    void add(const PhaseSeconds& more);
  };
  /// Values served as figures.
  struct Live {
    std::atomic<uint64_t> step = 0;
    std::atomic<uint64_t> own_steps = 0;
    std::atomic<uint64_t> examples = 0;
    std::atomic<uint64_t> staleness = 0;
    std::atomic<int64_t> epoch = 0;
    std::atomic<float> loss = 0;
    std::atomic<float> learning_rate = 0;
    std::atomic<double> eval_loss = std::numeric_limits<double>::quiet_NaN();
    std::atomic<double> eval_accuracy = std::numeric_limits<double>::quiet_NaN();
    std::array<std::atomic<double>, kPhases> phases = {};
  };

  [[nodiscard]] run::ObservedRole with_figures(run::ObservedRole role);
  [[nodiscard]] std::vector<observe::Metric> figures() const;
  /// Prepares for the first step, or the first after going back: drops records of later steps.
  void begin_with(const StepEvent& event);
  void summarise(const StepEvent& event);
  [[nodiscard]] double rate(const StepEvent& event, double now) const;
  void open_phases_file(uint64_t step);
  void add_phases_line(uint64_t step, double seconds);
  void write_histograms(uint64_t step);
  void warn(const std::string& text) const;
  [[nodiscard]] observe::HParams hparams() const;

  settings::Settings settings_;
  Shown shown_;
  uint64_t summary_every_;
  Live live_;
  observe::PhaseTimes phases_;
  Since summary_;
  Since line_;
  bool has_accuracy_ = true;
  bool begun_ = false;
  uint64_t histograms_step_ = 0;  ///< step at which they were last written
  Pace pace_;                     ///< pace of those at evaluations
  std::optional<base::CsvFile> phases_file_;
  double flushed_ = 0;  ///< when lines last reached the disk
  std::array<std::string, kPhases> phase_tags_;
  /// for each parameter the tags of its weights and its gradients
  std::vector<std::pair<std::string, std::string>> tags_;
  run::Observation observation_;  ///< last member, because its threads use those above
};

}  // namespace lockstep::train
