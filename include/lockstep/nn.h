// Layers, and models made of them. A layer is a function that creates its parameters under a scope and returns its
// output. A model is a function that builds the whole training graph for one batch size.
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

/// x [N, in] -> x w + b [N, units]. By default w is Xavier uniform and b zero.
Value dense(Value x, std::string_view name, int64_t units);
Value dense(Value x, std::string_view name, int64_t units, graph::Initializer weights,
            graph::Initializer bias = graph::Initializer::zeros());
/// x [N, C, H, W] -> convolution with a square kernel, plus bias.
Value conv(Value x, std::string_view name, int64_t channels, int64_t kernel, int64_t stride = 1, int64_t padding = 0);
/// The same with a window of any size, stride and padding.
Value conv(Value x, std::string_view name, int64_t channels, const graph::Window& window);

/// How the loss adds up the examples of a batch: their mean, or their sum (autoencoders). Reports always show the loss
/// per example.
enum class LossOver : uint8_t { mean, sum };

/// The training graph of a model for one batch size. A classifier sets all of the first five; a model that learns from
/// the images alone leaves labels and correct unset.
struct ModelGraph {
  Value images;   ///< input 0: float32 [N, channels, height, width]
  Value labels;   ///< input 1: int32 [N]
  Value scores;   ///< the model's output: logits [N, classes], a reconstruction, features
  Value loss;     ///< scalar
  Value correct;  ///< scalar: number of right answers in the batch
  LossOver loss_over = LossOver::mean;
  Value picture = {};  ///< image of the input's shape, shown beside it at evaluations; unset: nothing to show
  std::string picture_name = {};  ///< "reconstruction", "attention"
};

/// The arguments of a model's build function.
struct BuildRequest {
  int64_t batch = 1;
  bool training = true;  ///< false: dropout and noise are off
  Shape image;           ///< [channels, height, width] of the data
  int64_t classes = 10;
  std::map<std::string, std::string> options;  ///< resolved: checked, with defaults filled in
};

struct ModelOption {
  std::string name;
  std::string description;
  std::string default_value;
  std::vector<std::string> allowed;  ///< empty: any text
};

/// The model's training settings where the user gives none.
struct TrainingDefaults {
  std::string dataset = "mnist";
  std::string pixels = "unit";  ///< "unit" or "standard"; see the setting
  std::string optimizer = "sgd";
  float learning_rate = 0.01F;
  int64_t batch = 64;
  int64_t epochs = 10;
};

struct ModelDef {
  std::string name;
  std::string description;
  Shape image;  ///< image shape the model is made for; others are tried too
  TrainingDefaults defaults;
  std::vector<ModelOption> options;
  std::function<ModelGraph(Graph&, const BuildRequest&)> build;
  /// Changes the defaults to fit the options; may be empty.
  std::function<void(const std::map<std::string, std::string>& options, TrainingDefaults& defaults)> adjust = {};
  std::string file = {};  ///< file that defines the model; empty: built in
  int64_t classes = 10;   ///< classes of the data the model is made for
};

/// Parts that most classifiers share: the inputs, and the loss and count of right answers from the scores.
Value image_input(Graph& graph, const BuildRequest& request);
ModelGraph classifier(Value images, Value scores);

/// Returns the models that come with Lockstep.
const std::vector<ModelDef>& zoo();
/// Returns the model of that name. Throws UsageError with the nearest name as a suggestion.
const ModelDef& find_model(std::string_view name);
/// Returns the model's options with defaults filled in. Throws UsageError for an unknown option or a value not allowed.
std::map<std::string, std::string> resolve_options(const ModelDef& model,
                                                   const std::map<std::string, std::string>& given);
/// Returns the model's training defaults for these resolved options.
TrainingDefaults defaults_for(const ModelDef& model, const std::map<std::string, std::string>& options);
/// Checks the options, builds the model and checks the result. Throws UsageError if the model cannot take the images.
ModelGraph build(Graph& graph, const ModelDef& model, const BuildRequest& request);

}  // namespace lockstep::nn
