// Your own model, trained by your own program: a network with one hidden layer and dropout, a hook that prints
// progress, and a stop rule. Run it with the name of a data set (synthetic needs no files):
//   own_model [DATASET]
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "lockstep/error.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "lockstep/train.h"

namespace {

namespace nn = lockstep::nn;
namespace ops = lockstep::ops;
namespace train = lockstep::train;

/// Builds the graph for one batch size; shapes are checked as the graph grows.
nn::ModelGraph build(nn::Graph& graph, const nn::BuildRequest& request) {
  const nn::Value images = nn::image_input(graph, request);
  nn::Value x = ops::relu(nn::dense(ops::flatten(images), "hidden", std::stoi(request.options.at("hidden"))));
  if (request.training) x = ops::dropout(x, 0.2F);
  return nn::classifier(images, nn::dense(x, "scores", request.classes));
}

nn::ModelDef mlp() {
  nn::ModelDef model;
  model.name = "mlp";
  model.description = "one hidden layer with dropout";
  model.image = {1, 28, 28};
  model.defaults = {.optimizer = "adam", .learning_rate = 1e-3F, .batch = 100, .epochs = 5};
  model.options = {{"hidden", "units of the hidden layer", "64", {}}};
  model.build = build;
  return model;
}

class Watcher final : public train::Hooks {
 public:
  void on_start(const train::StartEvent& event) override {
    std::printf("%s has %zu parameters\n", event.model.c_str(), event.parameters);
  }
  void on_eval(const train::EvalEvent& event) override {
    std::printf("step %4llu: accuracy %.1f %%, loss %.4f\n", static_cast<unsigned long long>(event.step),
                event.accuracy * 100, event.loss);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Watcher watcher;
  train::Request request;
  request.models = {mlp()};
  request.settings = {{"model", "mlp"},
                      {"options", "hidden=32"},
                      {"dataset", argc > 1 ? argv[1] : "synthetic"},
                      {"stop-accuracy", "0.9"}};
  request.hooks = {&watcher};
  try {
    const train::Outcome outcome = train::train(request);
    std::printf("ended (%s) after %lld epochs in %.2f s, kept in %s\n", train::text(outcome.reason).c_str(),
                static_cast<long long>(outcome.epochs), outcome.seconds, outcome.run_dir.c_str());
    return outcome.last_eval && outcome.last_eval->accuracy >= 0.9 ? 0 : 1;
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "own_model: %s\n", error.what());
    return 1;
  }
}
