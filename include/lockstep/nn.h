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
Value dense(Value x, std::string_view name, int64_t units, graph::Initializer weights);
/// x [N, C, H, W] -> convolution with a square kernel, plus bias.
Value conv(Value x, std::string_view name, int64_t channels, int64_t kernel, int64_t stride = 1, int64_t padding = 0);

/// The training graph of a model for one batch size.
struct ModelGraph {
  Value images;   ///< input 0: float32 [N, channels, height, width]
  Value labels;   ///< input 1: int32 [N]
  Value scores;   ///< float32 [N, classes]: logits
  Value loss;     ///< scalar: mean over the batch
  Value correct;  ///< scalar: how many of the batch are right
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
  std::string optimizer = "sgd";
  float learning_rate = 0.01F;
  int64_t batch = 64;
  int64_t epochs = 10;
};

struct ModelDef {
  std::string name;
  std::string description;
  Shape image;  ///< the image shape it is made for
  TrainingDefaults defaults;
  std::vector<ModelOption> options;
  std::function<ModelGraph(Graph&, const BuildRequest&)> build;
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
/// Checks the request against the model and builds it.
ModelGraph build(Graph& graph, const ModelDef& model, const BuildRequest& request);

}  // namespace lockstep::nn
