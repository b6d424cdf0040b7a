// Layers, and models made of them. A layer is a function that creates its parameters under a scope and gives its
// output; a model is a function that builds the whole training graph for one batch size.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph.h"

namespace lockstep::nn {

using graph::Graph;
using graph::Value;

/// x [N, in] -> x w + b [N, units]; w is Xavier uniform and b zero unless said otherwise.
Value dense(Value x, std::string_view name, int64_t units);
Value dense(Value x, std::string_view name, int64_t units, graph::Initializer weights,
            graph::Initializer bias = graph::Initializer::zeros());
/// x [N, C, H, W] -> convolution with a square kernel, plus bias.
Value conv(Value x, std::string_view name, int64_t channels, int64_t kernel, int64_t stride = 1, int64_t padding = 0);
/// The same with a window of any form.
Value conv(Value x, std::string_view name, int64_t channels, const graph::Window& window);

/// How the loss adds up the examples of a batch: their mean, or their sum (autoencoders). Reports always show the loss
/// per example.
enum class LossOver : uint8_t { mean, sum };

/// The training graph of a model for one batch size. A classifier sets all of the first five; a model that learns from
/// the images alone leaves labels and correct unset.
struct ModelGraph {
  Value images;   ///< input 0: float32 [N, channels, height, width]
  Value labels;   ///< input 1: int32 [N]
  Value scores;   ///< what the model is for: logits [N, classes], a reconstruction, features
  Value loss;     ///< scalar
  Value correct;  ///< scalar: how many of the batch are right
  LossOver loss_over = LossOver::mean;
  Value picture = {};             ///< of the images' shape, shown beside them at evaluations; unset: nothing to show
  std::string picture_name = {};  ///< "reconstruction", "attention"
};

/// What a model is built for.
struct BuildRequest {
  int64_t batch = 1;
  bool training = true;  ///< false: dropout and noise are off
  Shape image;           ///< [channels, height, width] of the data
  int64_t classes = 10;
  std::map<std::string, std::string> options;  ///< checked against the model's own, defaults filled in
};

struct ModelOption {
  std::string name;
  std::string description;
  std::string default_value;
  std::vector<std::string> allowed;  ///< empty: any text
};

/// What a model trains with unless the user says otherwise.
struct TrainingDefaults {
  std::string dataset = "mnist";
  std::string pixels = "unit";  ///< or "standard"; see the setting
  std::string optimizer = "sgd";
  float learning_rate = 0.01F;
  int64_t batch = 64;
  int64_t epochs = 10;
};

struct ModelDef {
  std::string name;
  std::string description;
  Shape image;  ///< the image shape it is made for; others are tried too
  TrainingDefaults defaults;
  std::vector<ModelOption> options;
  std::function<ModelGraph(Graph&, const BuildRequest&)> build;
  /// Where the defaults depend on the options: changes them.
  std::function<void(const std::map<std::string, std::string>& options, TrainingDefaults& defaults)> adjust = {};
  std::string file = {};  ///< the file it was read from, for a model that is one
  int64_t classes = 10;   ///< of the data it is made for
};

/// The inputs of a classifier, and the loss and count of right answers from its scores: what most models share.
Value image_input(Graph& graph, const BuildRequest& request);
ModelGraph classifier(Value images, Value scores);

/// The models that come with Lockstep.
const std::vector<ModelDef>& zoo();
/// Throws UsageError that suggests the nearest name.
const ModelDef& find_model(std::string_view name);
/// The model's options with defaults filled in; throws UsageError for an unknown option or a value not allowed.
std::map<std::string, std::string> resolve_options(const ModelDef& model,
                                                   const std::map<std::string, std::string>& given);
/// The model's training defaults with those options (resolved).
TrainingDefaults defaults_for(const ModelDef& model, const std::map<std::string, std::string>& options);
/// Checks the options, builds the model and checks what was built. Throws UsageError for images that it cannot take.
ModelGraph build(Graph& graph, const ModelDef& model, const BuildRequest& request);

}  // namespace lockstep::nn
