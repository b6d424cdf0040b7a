// The kinds of layers in model files, in one table: their keys, their defaults, and their construction from ops.
// `lockstep docs layers` prints the table. Constant data and free functions; any thread, one graph per thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/layer_arguments.h"
#include "lockstep/nn.h"

namespace lockstep::interchange {

struct LayerKey {
  std::string_view name;
  std::string_view takes;     ///< "a whole number"
  std::string_view fallback;  ///< default value; empty: required
};

/// The parts that a layer is built from. Shapes that do not fit are a ShapeError without file and layer; the caller
/// adds them.
struct LayerContext {
  nn::Graph& graph;
  const nn::BuildRequest& request;
  std::string_view name;
  std::vector<nn::Value> inputs;
  const Arguments& args;

  [[nodiscard]] nn::Value x() const { return inputs[0]; }
  /// Adds a trained tensor. Throws an error with the memory it needs if the machine has less.
  nn::Value parameter(std::string_view parameter_name, const std::vector<int64_t>& dims,
                      graph::Initializer start) const;
};

using LayerBuild = nn::Value (*)(const LayerContext&);

/// The scope of a layer's nodes: its name if the user gave one, always its name, or none.
enum class Scoping : uint8_t { named, always, never };

struct LayerKind {
  std::string_view name;
  std::string_view group;
  int least_inputs;
  int most_inputs;        ///< -1: any number
  std::string_view main;  ///< target of `kind: VALUE`: a key, "inputs" or nothing
  std::string_view help;
  std::vector<LayerKey> keys;
  LayerBuild build;
  Scoping scoping = Scoping::named;
  bool with_labels = false;  ///< true: the last input defaults to `labels`
};

/// Returns the kinds in the order of the documentation.
const std::vector<LayerKind>& layer_kinds();
/// Returns nullptr for an unknown name.
const LayerKind* find_layer_kind(std::string_view name);
std::vector<std::string> layer_kind_names();

/// Throws ShapeError with the memory needed if this machine cannot hold the tensor. Safe for any sizes.
void check_size(const std::string& what, std::span<const int64_t> dims, size_t copies = 1);

// Builders, by file.
nn::Value build_dense(const LayerContext& layer);
nn::Value build_conv(const LayerContext& layer);
nn::Value build_bias(const LayerContext& layer);
nn::Value build_parameter(const LayerContext& layer);
nn::Value build_conv2d(const LayerContext& layer);
nn::Value build_max_pool(const LayerContext& layer);
nn::Value build_avg_pool(const LayerContext& layer);
nn::Value build_lrn(const LayerContext& layer);
nn::Value build_affine_grid(const LayerContext& layer);
nn::Value build_bilinear_sample(const LayerContext& layer);

nn::Value build_dropout(const LayerContext& layer);
nn::Value build_noise(const LayerContext& layer);
nn::Value build_random_normal(const LayerContext& layer);
nn::Value build_random_uniform(const LayerContext& layer);
nn::Value build_constant(const LayerContext& layer);
nn::Value build_reshape(const LayerContext& layer);
nn::Value build_transpose(const LayerContext& layer);
nn::Value build_concat(const LayerContext& layer);
nn::Value build_slice(const LayerContext& layer);
nn::Value build_broadcast_to(const LayerContext& layer);

}  // namespace lockstep::interchange
