// Setup: everything a Trainer needs, made from settings and data and owned in one place: backend, parameters, programs,
// exchange, loader, evaluator. It knows no files, so tests and benchmarks train with it alone; a Session adds the run
// directory. For one thread; not movable, since its parts borrow from each other.
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

/// A process that trains with others.
struct Together {
  /// Makes its exchange; the options are those of the optimizer.
  std::function<std::unique_ptr<exchange::Exchange>(program::ParameterStore&, const exchange::LocalOptions&)> exchange;
  int64_t gradients_per_update = 1;   ///< sync: of how many batches; async: 1
  int64_t most_batches_per_step = 1;  ///< that this process may compute for one update
  uint64_t seed_of_order = 0;         ///< added to the seed that the data is shuffled by
};

class Setup {
 public:
  /// A new training, or the one of `checkpoint` where given (its parameters, optimizer state and place in the data).
  /// Prepares the program of a full batch, so that what does not fit is found here. Throws UsageError for settings that
  /// do not fit the data or the checkpoint, DataError for a checkpoint of another model.
  Setup(const settings::Settings& settings, const nn::ModelDef& model, data::Dataset dataset,
        const checkpoint::Checkpoint* checkpoint = nullptr, const Together* together = nullptr,
        base::TraceTrack* trace = nullptr);
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  /// The parts for a Trainer; hooks, checkpointer and interrupt are the caller's to add.
  [[nodiscard]] Parts parts();
  [[nodiscard]] TrainerOptions trainer_options() const;
  /// Where training starts.
  [[nodiscard]] const checkpoint::TrainingState& state() const { return state_; }

  /// Writes what the model shows of the evaluated split into a folder at each evaluation, and gives it to `sink` where
  /// there is one; null where it shows nothing. Borrows from here.
  [[nodiscard]] std::unique_ptr<Hooks> picture_writer(const std::string& folder, PictureSink sink = {}) const;
  /// Gives `sink` a picture of what the model takes some images of the evaluated split for, at each evaluation; null
  /// where it is no classifier or its images cannot be shown. Borrows from here.
  [[nodiscard]] std::unique_ptr<Hooks> sample_writer(PictureSink sink) const;
  /// What a step computes, forward and backward, as it was built: before anything is fused or reordered.
  [[nodiscard]] graph::Graph training_graph() const { return train::training_graph(spec_, settings_.batch); }

  /// A header for a checkpoint of this training; its state is still to be filled in.
  [[nodiscard]] checkpoint::CheckpointHeader header();
  /// What the model starts with, before any training.
  [[nodiscard]] std::vector<float> first_parameters() const;

  [[nodiscard]] const data::Dataset& dataset() const { return dataset_; }
  /// What the images are scaled by besides; empty unless the setting pixels is standard.
  [[nodiscard]] const data::PixelScaling& pixels() const { return pixels_; }
  /// With decay_steps resolved.
  [[nodiscard]] const settings::Settings& settings() const { return settings_; }
  [[nodiscard]] const program::ParameterStore& parameters() const { return parameters_; }
  [[nodiscard]] const ModelTraits& traits() const { return programs_.traits(); }
  [[nodiscard]] int threads() const { return threads_; }
  /// Updates in an epoch, and until --steps, --epochs or --repeat end the training (0: none does).
  [[nodiscard]] uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  [[nodiscard]] uint64_t total_steps() const;

 private:
  /// Checks the checkpoint, where there is one, and takes over what it holds; gives the state.
  const checkpoint::TrainingState& restore(const checkpoint::Checkpoint* checkpoint);
  void check_match(const checkpoint::CheckpointHeader& header);
  /// Of model, data and settings.
  void check_fit() const;
  [[nodiscard]] exchange::LocalOptions exchange_options() const;
  [[nodiscard]] std::unique_ptr<exchange::Exchange> make_exchange(const Together* together);
  [[nodiscard]] const data::Examples& evaluated_split() const;
  /// Prepares the program of a full batch before a loader takes memory for it: what does not fit is told by the model.
  const data::Examples& trained_split();

  int64_t gradients_per_update_;
  settings::Settings settings_;
  data::Dataset dataset_;
  data::PixelScaling pixels_;  ///< empty: pixels are taken as they are
  int threads_;
  base::TraceTrack* trace_;  ///< of the training thread; may be absent
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

/// A header's settings against those of now: UsageError that names the first that had to stay the same.
void check_settings_match(const checkpoint::CheckpointHeader& header, const settings::Settings& settings,
                          const std::string& file);

}  // namespace lockstep::train
