// Setup: makes and owns everything a Trainer needs, from settings and data: backend, parameters, programs, exchange,
// loader, evaluator. It knows no files, so tests and benchmarks train with it alone; a Session adds the run directory.
// For one thread; not movable, because its parts borrow from each other.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "exchange/local_exchange.h"
#include "train/pictures.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Options of a process that trains with others.
struct Together {
  /// Makes the exchange; the options are those of the optimizer.
  std::function<std::unique_ptr<exchange::Exchange>(program::ParameterStore&, const exchange::LocalOptions&)> exchange;
  int64_t gradients_per_update = 1;   ///< sync: number of batches per update; async: 1
  bool one_of_each_member = false;    ///< an update takes one gradient of each member, however many there are
  int64_t most_batches_per_step = 1;  ///< limit of batches that this process computes for one update
  uint64_t seed_of_order = 0;         ///< added to the seed of the data's order
};

class Setup {
 public:
  /// Prepares a new training, or the one of `checkpoint` if given (its parameters, optimizer state and position in the
  /// data). Prepares the program of a full batch, so that errors are found here. Throws UsageError for settings that do
  /// not fit the data or the checkpoint, DataError for a checkpoint of another model.
  Setup(const settings::Settings& settings, const nn::ModelDef& model, data::Dataset dataset,
        const checkpoint::Checkpoint* checkpoint = nullptr, const Together* together = nullptr,
        base::TraceTrack* trace = nullptr);
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  /// Returns the parts for a Trainer; the caller adds hooks, checkpointer and interrupt.
  [[nodiscard]] Parts parts();
  [[nodiscard]] TrainerOptions trainer_options() const;
  /// The state that training starts from.
  [[nodiscard]] const checkpoint::TrainingState& state() const { return state_; }

  /// Returns a hook that writes the model's pictures of the evaluated split into a folder at each evaluation, and gives
  /// them to `sink` if there is one; null if the model has no pictures. Borrows from the Setup.
  [[nodiscard]] std::unique_ptr<Hooks> picture_writer(const std::string& folder, PictureSink sink = {}) const;
  /// Returns a hook that gives `sink` a picture of the model's predictions for some images of the evaluated split, at
  /// each evaluation; null if the model is no classifier or its images cannot be shown. Borrows from the Setup.
  [[nodiscard]] std::unique_ptr<Hooks> sample_writer(PictureSink sink) const;
  /// Returns the graph of a step, forward and backward, as it was built, before anything is fused or reordered.
  [[nodiscard]] graph::Graph training_graph() const { return train::training_graph(spec_, settings_.batch); }

  /// Returns a header for a checkpoint of this training; the caller fills in the state.
  [[nodiscard]] checkpoint::CheckpointHeader header();
  /// Returns the model's initial parameters, before any training.
  [[nodiscard]] std::vector<float> first_parameters() const;

  [[nodiscard]] const data::Dataset& dataset() const { return dataset_; }
  /// Additional scaling of the images; empty unless the setting pixels is standard.
  [[nodiscard]] const data::PixelScaling& pixels() const { return pixels_; }
  /// Settings with decay_steps resolved.
  [[nodiscard]] const settings::Settings& settings() const { return settings_; }
  [[nodiscard]] const program::ParameterStore& parameters() const { return parameters_; }
  [[nodiscard]] const ModelTraits& traits() const { return programs_.traits(); }
  [[nodiscard]] int threads() const { return threads_; }
  /// Updates in an epoch, and until --steps, --epochs or --repeat end the training (0: no end).
  [[nodiscard]] uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  [[nodiscard]] uint64_t total_steps() const;
  /// Returns the same if the data of `plan` is left after `step` updates, and an update takes a round of it.
  [[nodiscard]] uint64_t total_steps(const data::Plan& plan, uint64_t step) const;

 private:
  /// Checks the checkpoint, if there is one, and takes over its contents; returns the state.
  const checkpoint::TrainingState& restore(const checkpoint::Checkpoint* checkpoint);
  void check_match(const checkpoint::CheckpointHeader& header);
  /// Checks that model, data and settings fit together.
  void check_fit() const;
  [[nodiscard]] exchange::LocalOptions exchange_options() const;
  [[nodiscard]] std::unique_ptr<exchange::Exchange> make_exchange(const Together* together);
  [[nodiscard]] const data::Examples& evaluated_split() const;
  /// Prepares the program of a full batch before a loader takes memory for it, so that errors name the model.
  const data::Examples& trained_split();

  int64_t gradients_per_update_;
  bool one_of_each_member_;
  settings::Settings settings_;
  data::Dataset dataset_;
  data::PixelScaling pixels_;  ///< empty: pixels are used unscaled
  int threads_;
  base::TraceTrack* trace_;  ///< track of the training thread; may be absent
  std::unique_ptr<backend::Backend> backend_;
  ModelSpec spec_;
  checkpoint::TrainingState state_;
  uint64_t steps_per_epoch_ = 0;
  program::ParameterStore parameters_;
  Buffer micro_gradients_;
  Programs programs_;
  std::unique_ptr<exchange::Exchange> exchange_;
  data::Loader loader_;
  Evaluator evaluator_;
};

/// Compares a header's settings with the current ones: throws UsageError that names the first setting that must not
/// change.
void check_settings_match(const checkpoint::CheckpointHeader& header, const settings::Settings& settings,
                          const std::string& file);

}  // namespace lockstep::train
