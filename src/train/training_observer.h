// The hook that records a training: scalars, histograms, pictures and the graph for TensorBoard, phases.csv, figures
// for Prometheus. It borrows the parameters. For the training thread; figures are asked for by others.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/csv_file.h"
#include "lockstep/train.h"
#include "observe/phases.h"
#include "program/parameters.h"
#include "run/observation.h"
#include "train/pace.h"
#include "train/pictures.h"

namespace lockstep::train {

/// What there is to show besides numbers.
struct Shown {
  const program::ParameterStore* parameters = nullptr;  ///< borrowed
  std::function<graph::Graph()> graph;                  ///< of a training step
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

  /// Whether pictures are wanted, and one of them.
  [[nodiscard]] bool shows() { return observation_.summaries() != nullptr; }
  void show(const std::string& name, uint64_t step, const EncodedPicture& picture);
  /// What came after the last step.
  void add_end(const PhaseSeconds& phases);
  [[nodiscard]] std::vector<PhaseRecord> phases() const { return phases_.records(); }
  /// Ends looking at resources and gives what was seen.
  std::optional<observe::ResourceSummary> stop() { return observation_.stop(); }

 private:
  /// What has gathered since the last summary, or the last line of phases.csv.
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
  /// What those who ask for figures see.
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
  /// The first step, or one after going back: what is there of later ones does not count.
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
  uint64_t histograms_step_ = 0;  ///< when they were last written
  Pace pace_;                     ///< of those at evaluations
  std::optional<base::CsvFile> phases_file_;
  double flushed_ = 0;  ///< when lines last reached the disk
  std::array<std::string, kPhases> phase_tags_;
  std::vector<std::pair<std::string, std::string>> tags_;  ///< of each parameter: of its weights, of its gradients
  run::Observation observation_;                           ///< last: its threads use what is above
};

}  // namespace lockstep::train
