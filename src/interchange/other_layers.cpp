// Layers that are random, constant, or only move values.
#include "interchange/layer_kinds.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using nn::Value;

constexpr int64_t kMostSize = int64_t{1} << 31;

/// Returns [batch] and the sizes of the key `shape`, with -1 if allowed.
std::vector<int64_t> with_batch(const LayerContext& layer, int64_t batch, int64_t least) {
  std::vector<int64_t> dims{batch};
  std::vector<int64_t> known{batch};
  for (const int64_t size : layer.args.integers("shape", least, kMostSize)) {
    if (size == 0) layer.args.reject("shape", "a size of 0 is not allowed");
    dims.push_back(size);
    if (size > 0) known.push_back(size);
  }
  check_size("shape", known);
  if (dims.size() > Shape::kMaxRank) {
    layer.args.reject(
        "shape", "has " + std::to_string(dims.size() - 1) + " sizes; at most " + std::to_string(Shape::kMaxRank - 1));
  }
  return dims;
}

int64_t first_axis(Value x) {
  if (x.shape().rank() < 1) throw ShapeError("x [] must have at least one axis");
  return x.shape()[0];
}

float float_of(const LayerContext& layer, std::string_view key, double fallback) {
  return static_cast<float>(layer.args.number(key, fallback));
}

Shape random_shape(const LayerContext& layer) {
  if (!layer.args.has("shape")) return layer.x().shape();
  return Shape(with_batch(layer, layer.request.batch, 1));
}

bool is_off(const LayerContext& layer, bool training_only) {
  return layer.args.flag("training_only", training_only) && !layer.request.training;
}

int axis_of(const LayerContext& layer) {
  return static_cast<int>(layer.args.integer("axis", 1, -Shape::kMaxRank, Shape::kMaxRank));
}

}  // namespace

Value build_dropout(const LayerContext& layer) {
  const Arguments& args = layer.args;
  if (args.has("rate") && args.has("keep")) args.reject("keep", "cannot be combined with rate; give one of them");
  if (!args.has("rate") && !args.has("keep")) args.reject("rate", "is missing");
  const auto rate =
      static_cast<float>(args.has("rate") ? args.number("rate", {}, 0, 1) : 1.0 - args.number("keep", {}, 0, 1));
  if (rate >= 1.0F) args.reject(args.has("rate") ? "rate" : "keep", "would zero every element");
  return layer.request.training && rate > 0 ? ops::dropout(layer.x(), rate) : layer.x();
}

Value build_noise(const LayerContext& layer) {
  const float mean = float_of(layer, "mean", 0);
  const float deviation = float_of(layer, "deviation", 1);
  if (is_off(layer, true)) return layer.x();
  return ops::add(layer.x(), ops::random_normal(layer.graph, layer.x().shape(), mean, deviation));
}

Value build_random_normal(const LayerContext& layer) {
  const float mean = float_of(layer, "mean", 0);
  const float deviation = float_of(layer, "deviation", 1);
  const Shape shape = random_shape(layer);
  if (is_off(layer, false)) return ops::constant(layer.graph, shape, mean);
  return ops::random_normal(layer.graph, shape, mean, deviation);
}

Value build_random_uniform(const LayerContext& layer) {
  const float low = float_of(layer, "low", 0);
  const float high = float_of(layer, "high", 1);
  const Shape shape = random_shape(layer);
  if (is_off(layer, false)) return ops::constant(layer.graph, shape, (low + high) / 2);
  return ops::random_uniform(layer.graph, shape, low, high);
}

Value build_constant(const LayerContext& layer) {
  std::vector<int64_t> dims;
  if (layer.args.has("shape")) dims = layer.args.integers("shape", 1, kMostSize);
  check_size("shape", dims);
  return ops::constant(layer.graph, Shape(dims), static_cast<float>(layer.args.number("value", {})));
}

Value build_reshape(const LayerContext& layer) {
  return ops::reshape(layer.x(), with_batch(layer, first_axis(layer.x()), -1));
}

Value build_transpose(const LayerContext& layer) {
  return ops::transpose(layer.x(), layer.args.integers("axes", 0, Shape::kMaxRank));
}

Value build_concat(const LayerContext& layer) { return ops::concat(layer.inputs, axis_of(layer)); }

Value build_slice(const LayerContext& layer) {
  const int64_t begin = layer.args.integer("begin", 0, 0, kMostSize);
  return ops::slice(layer.x(), axis_of(layer), begin, layer.args.integer("size", {}, 1, kMostSize));
}

Value build_broadcast_to(const LayerContext& layer) {
  return ops::broadcast_to(layer.x(), Shape(with_batch(layer, layer.request.batch, 1)));
}

}  // namespace lockstep::interchange
