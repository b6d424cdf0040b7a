// A program with its own model and the whole command line of `lockstep`:
//   own_program models
//   own_program train mlp --dataset synthetic --epochs 2
//   own_program eval runs/mlp-1
#include <string>

#include "lockstep/error.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "lockstep/program.h"

namespace {

namespace nn = lockstep::nn;
namespace ops = lockstep::ops;

int units(const nn::BuildRequest& request) {
  const std::string& text = request.options.at("hidden");
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const int count = digits && !text.empty() && text.size() < 6 ? std::stoi(text) : 0;
  if (count == 0) throw lockstep::UsageError("hidden: '" + text + "' is not allowed; it takes 1 to 99999");
  return count;
}

/// Builds the graph for one batch size; shapes are checked as the graph grows.
nn::ModelGraph build(nn::Graph& graph, const nn::BuildRequest& request) {
  const nn::Value images = nn::image_input(graph, request);
  nn::Value x = ops::relu(nn::dense(ops::flatten(images), "hidden", units(request)));
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

}  // namespace

int main(int argc, char** argv) { return lockstep::run_program(argc, argv, {mlp()}); }
