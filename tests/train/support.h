// Shared by the tests of training: small data, recording hooks, and models that misbehave.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "data/synthetic.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "lockstep/train.h"
#include "role/session.h"
#include "settings/configuration.h"
#include "train/setup.h"

namespace lockstep::train::testing {

using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;

using Flags = std::map<std::string, std::string>;

inline data::Dataset small_data(int64_t train = 300, int64_t test = 50) {
  return data::synthetic({.train = train, .test = test});
}

inline settings::Settings settings_from(const Flags& flags, std::span<const nn::ModelDef> models = {}) {
  settings::Configuration configuration(models);
  configuration.set("threads", "1");
  for (const auto& [name, text] : flags) configuration.set(name, text);
  return configuration.resolve();
}

/// Records all events, and sets the interrupt flag after a given step.
class Recorder : public Hooks {
 public:
  void on_start(const StartEvent& event) override { start = event; }
  void on_step(const StepEvent& event) override {
    steps.push_back(event);
    order.push_back("step");
    if (event.step == interrupt_at) interrupt = true;
  }
  void on_eval(const EvalEvent& event) override {
    evals.push_back(event);
    order.push_back("eval");
  }
  void on_checkpoint(const CheckpointEvent& event) override {
    checkpoints.push_back(event);
    order.push_back("checkpoint");
  }
  void on_end(const Outcome& outcome) override { ends.push_back(outcome); }

  [[nodiscard]] std::vector<float> losses() const {
    std::vector<float> result;
    for (const StepEvent& step : steps) result.push_back(step.loss);
    return result;
  }

  StartEvent start;
  std::vector<StepEvent> steps;
  std::vector<EvalEvent> evals;
  std::vector<CheckpointEvent> checkpoints;
  std::vector<Outcome> ends;
  std::vector<std::string> order;
  uint64_t interrupt_at = 0;
  std::atomic<bool> interrupt = false;
};

/// Trains with a run directory, as `lockstep train` does, on small generated data.
inline Outcome train_session(const Flags& flags, Recorder& recorder, std::span<const nn::ModelDef> models,
                             const data::Dataset& dataset) {
  settings::Configuration configuration(models);
  for (const auto& [name, text] : flags) configuration.set(name, text);
  role::SessionOptions options;
  options.hooks = {&recorder};
  options.interrupt = &recorder.interrupt;
  options.dataset = &dataset;
  return role::Session(configuration, options).run();
}

/// Trains without a run directory; the setup stays available.
struct Training {
  explicit Training(const Flags& flags, data::Dataset dataset = small_data(), std::vector<nn::ModelDef> extra = {})
      : models(std::move(extra)),
        settings(settings_from(flags, models)),
        setup(settings, settings::Configuration(models).model(settings.model), std::move(dataset)) {}

  StopReason run() {
    Parts parts = setup.parts();
    parts.hooks = {&recorder};
    parts.interrupt = &recorder.interrupt;
    Trainer trainer(parts, setup.trainer_options(), setup.state());
    const RunClock clock;
    const StopReason reason = trainer.run(clock);
    state = trainer.state();
    return reason;
  }

  [[nodiscard]] std::vector<float> parameters() const {
    const auto values = setup.parameters().values();
    return {values.begin(), values.end()};
  }

  std::vector<nn::ModelDef> models;
  settings::Settings settings;
  Setup setup;
  Recorder recorder;
  checkpoint::TrainingState state;
};

/// A model whose loss falls without bound, faster and faster, until it is infinite.
inline nn::ModelDef exploding_model() {
  nn::ModelDef model;
  model.name = "exploding";
  model.description = "minimises -exp(mean(scores^2))";
  model.image = {1, 28, 28};
  model.defaults = {.optimizer = "sgd", .learning_rate = 1, .batch = 20, .epochs = 10};
  model.build = [](nn::Graph& graph, const nn::BuildRequest& request) {
    const nn::Value images = nn::image_input(graph, request);
    nn::ModelGraph built = nn::classifier(images, nn::dense(ops::flatten(images), "dense", request.classes));
    built.loss = ops::neg(ops::exp(ops::reduce_mean(ops::square(built.scores))));
    return built;
  };
  return model;
}

/// Softmax regression with dropout on its input: random at every step.
inline nn::ModelDef dropout_model() {
  nn::ModelDef model;
  model.name = "dropout";
  model.description = "softmax regression with dropout";
  model.image = {1, 28, 28};
  model.defaults = {.optimizer = "sgd", .learning_rate = 0.1F, .batch = 20, .epochs = 10};
  model.build = [](nn::Graph& graph, const nn::BuildRequest& request) {
    const nn::Value images = nn::image_input(graph, request);
    nn::Value x = ops::flatten(images);
    if (request.training) x = ops::dropout(x, 0.3F);
    return nn::classifier(images, nn::dense(x, "dense", request.classes));
  };
  return model;
}

}  // namespace lockstep::train::testing
