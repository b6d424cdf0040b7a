// Autoencoders: plain, denoising (gaussian, masking) and variational. The decoder mirrors the encoder; its last layer
// starts at zero.
#include "lockstep/ops.h"
#include "nn/option_values.h"
#include "nn/zoo.h"

namespace lockstep::nn {
namespace {

constexpr float kNoise = 0.01F;
constexpr float kMasked = 0.05F;

/// Returns x with the kind's noise, the encoder's input.
Value corrupted(Value x, const BuildRequest& request) {
  const std::string& kind = request.options.at("kind");
  if (!request.training) return x;
  if (kind == "gaussian") return ops::add(x, ops::random_normal(x.graph(), x.shape(), 0, kNoise));
  return kind == "masking" ? ops::dropout(x, kMasked) : x;
}

struct Code {
  Value z;
  Value divergence;  ///< variational only: divergence from the standard normal distribution, a scalar
};

Value layer_before_code(Value x, const std::vector<int64_t>& hidden) {
  for (size_t i = 0; i + 1 < hidden.size(); ++i) {
    x = ops::softplus(dense(x, "encoder" + std::to_string(i + 1), hidden[i]));
  }
  return x;
}

Code variational_code(Value x, const BuildRequest& request, int64_t units) {
  const Value mean = dense(x, "mean", units);
  const Value log_variance = dense(x, "log_variance", units);
  const graph::Scope scope(x.graph(), "code");
  const Value variance = ops::exp(log_variance);
  const Value inner = ops::sub(ops::sub(ops::add_scalar(log_variance, 1), ops::square(mean)), variance);
  const std::vector<int> units_axis{1};
  Code code{mean, ops::reduce_mean(ops::scale(ops::reduce_sum(inner, units_axis), -0.5F))};
  if (request.training) {
    const Value noise = ops::random_normal(x.graph(), mean.shape());
    code.z = ops::add(mean, ops::mul(ops::sqrt(variance), noise));
  }
  return code;
}

Code encode(Value x, const BuildRequest& request, const std::vector<int64_t>& hidden) {
  x = layer_before_code(x, hidden);
  if (request.options.at("kind") == "variational") return variational_code(x, request, hidden.back());
  return {ops::softplus(dense(x, "encoder" + std::to_string(hidden.size()), hidden.back())), {}};
}

Value decode(Value z, const std::vector<int64_t>& hidden, int64_t pixels) {
  for (size_t i = hidden.size() - 1; i > 0; --i) {
    z = ops::softplus(dense(z, "decoder" + std::to_string(hidden.size() - i), hidden[i - 1]));
  }
  return dense(z, "reconstruction", pixels, graph::Initializer::zeros());
}

ModelGraph build_autoencoder(Graph& graph, const BuildRequest& request) {
  const std::vector<int64_t> hidden = sizes(request, "hidden");
  ModelGraph model;
  model.images = image_input(graph, request);
  const Value x = ops::flatten(model.images);
  const Code code = encode(corrupted(x, request), request, hidden);
  model.scores = decode(code.z, hidden, x.shape()[1]);
  model.picture = ops::reshape(model.scores, model.images.shape());
  model.picture_name = "reconstruction";
  const graph::Scope scope(graph, "loss");
  model.loss = ops::scale(ops::reduce_sum(ops::square(ops::sub(model.scores, x))), 0.5F);
  if (code.divergence.valid()) model.loss = ops::add(model.loss, code.divergence);
  model.loss_over = LossOver::sum;
  return model;
}

void adjust_autoencoder(const std::map<std::string, std::string>& options, TrainingDefaults& defaults) {
  if (options.at("kind") == "variational") defaults.pixels = "unit";
  if (options.at("kind") == "masking") defaults.epochs = 100;
}

ModelDef define(const std::string& name, const std::string& description, const std::string& hidden) {
  ModelDef model;
  model.name = name;
  model.description = description;
  model.image = {1, 28, 28};
  model.defaults = {.pixels = "standard", .optimizer = "adam", .learning_rate = 1e-3F, .batch = 128, .epochs = 20};
  model.options = {{"kind", "what makes it hard", "plain", {"plain", "gaussian", "masking", "variational"}},
                   {"hidden", "units of the hidden layers, mirrored in the decoder, e.g. 400-200", hidden, {}}};
  model.build = build_autoencoder;
  model.adjust = adjust_autoencoder;
  return model;
}

}  // namespace

ModelDef autoencoder() { return define("autoencoder", "autoencoder with one hidden layer", "200"); }
ModelDef autoencoder_large() { return define("autoencoder-large", "autoencoder with three hidden layers", "400-200"); }

}  // namespace lockstep::nn
