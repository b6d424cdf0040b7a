#include "interchange/layer_kinds.h"

#include <algorithm>

#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using nn::Value;

constexpr std::string_view kWhole = "a whole number";
constexpr std::string_view kPair = "a whole number, or [vertical, horizontal]";
constexpr std::string_view kPadding = "a whole number, [vertical, horizontal], `same` or `valid`";
constexpr std::string_view kNumber = "a number";
constexpr std::string_view kFlag = "true or false";
constexpr std::string_view kStart = "start values";
constexpr std::string_view kDims = "a list of sizes";
constexpr std::string_view kSampling = "`study` or `half_pixel`";
constexpr std::string_view kActivation = "`none`, `relu`, `tanh`, `sigmoid` or `softplus`";

template <Value (*op)(Value)>
Value unary(const LayerContext& layer) {
  return op(layer.x());
}

template <Value (*op)(Value, Value)>
Value binary(const LayerContext& layer) {
  return op(layer.inputs[0], layer.inputs[1]);
}

template <Value (*op)(Value, std::span<const int>, bool)>
Value reduce(const LayerContext& layer) {
  std::vector<int> axes;
  if (layer.args.has("axes")) {
    for (const int64_t axis : layer.args.integers("axes", -Shape::kMaxRank, Shape::kMaxRank)) {
      axes.push_back(static_cast<int>(axis));
    }
  }
  return op(layer.x(), axes, layer.args.flag("keep_dims", false));
}

Value build_scale(const LayerContext& layer) {
  return ops::scale(layer.x(), static_cast<float>(layer.args.number("factor", {})));
}

Value build_add_scalar(const LayerContext& layer) {
  return ops::add_scalar(layer.x(), static_cast<float>(layer.args.number("term", {})));
}

Value build_matmul(const LayerContext& layer) {
  return ops::matmul(layer.inputs[0], layer.inputs[1], layer.args.flag("trans_a", false),
                     layer.args.flag("trans_b", false));
}

constexpr std::string_view kTrained = "With parameters";
constexpr std::string_view kWindows = "Over the image";
constexpr std::string_view kUnary = "Of one value, element by element";
constexpr std::string_view kBinary = "Of two values, element by element, with broadcasting";
constexpr std::string_view kReduce = "Over axes";
constexpr std::string_view kShape = "Shapes";
constexpr std::string_view kRandom = "Random numbers and constants";
constexpr std::string_view kScores = "Scores and labels";

std::vector<LayerKind> trained_kinds() {
  return {
      {"dense",
       kTrained,
       1,
       1,
       "units",
       "x w + b; x is a matrix [batch, inputs]",
       {{"units", kWhole, ""},
        {"weights", kStart, "xavier"},
        {"bias", "start values or `none`", "zeros"},
        {"activation", kActivation, "none"}},
       build_dense,
       Scoping::always},
      {"conv",
       kTrained,
       1,
       1,
       "",
       "convolution of x [batch, channels, height, width], plus a bias per channel",
       {{"channels", kWhole, ""},
        {"kernel", kPair, ""},
        {"stride", kPair, "1"},
        {"padding", kPadding, "0"},
        {"weights", kStart, "xavier"},
        {"bias", "start values or `none`", "zeros"},
        {"activation", kActivation, "none"}},
       build_conv,
       Scoping::always},
      {"bias",
       kTrained,
       1,
       1,
       "start",
       "x plus a trained value per index of axis 1",
       {{"start", kStart, "zeros"}},
       build_bias,
       Scoping::always},
      {"parameter",
       kTrained,
       0,
       0,
       "shape",
       "a trained tensor; its shape has no batch",
       {{"shape", kDims, ""}, {"start", kStart, "xavier"}},
       build_parameter,
       Scoping::never},
      {"matmul",
       kTrained,
       2,
       2,
       "inputs",
       "product of two matrices",
       {{"trans_a", kFlag, "false"}, {"trans_b", kFlag, "false"}},
       build_matmul},
      {"bias_add",
       kTrained,
       2,
       2,
       "inputs",
       "first input plus the second (a vector) along axis 1",
       {},
       binary<ops::bias_add>},
  };
}

std::vector<LayerKind> window_kinds() {
  const std::vector<LayerKey> pool{{"kernel", kPair, ""}, {"stride", kPair, "the kernel"}, {"padding", kPadding, "0"}};
  return {
      {"max_pool", kWindows, 1, 1, "kernel", "largest value of each window", pool, build_max_pool},
      {"avg_pool", kWindows, 1, 1, "kernel", "mean of each window's cells inside the image", pool, build_avg_pool},
      {"conv2d",
       kWindows,
       2,
       2,
       "inputs",
       "convolution of the first input with the second, weights [out, in, h, w]",
       {{"stride", kPair, "1"}, {"padding", kPadding, "0"}},
       build_conv2d},
      {"lrn",
       kWindows,
       1,
       1,
       "",
       "local response normalisation: x / (bias + alpha * sum of x^2 over the channels within radius) ^ beta",
       {{"radius", kWhole, "2"}, {"alpha", kNumber, "0.0001"}, {"beta", kNumber, "0.75"}, {"bias", kNumber, "2"}},
       build_lrn},
      {"affine_grid",
       kWindows,
       1,
       1,
       "",
       "sampling points, [batch, height, width, 2]: theta [batch, 6], a 2x3 matrix, times (x, y, 1)",
       {{"height", kWhole, "the images'"}, {"width", kWhole, "the images'"}, {"sampling", kSampling, "study"}},
       build_affine_grid},
      {"bilinear_sample",
       kWindows,
       2,
       2,
       "inputs",
       "the first input, an image, read at the points of the second, a grid",
       {{"sampling", kSampling, "study"}},
       build_bilinear_sample},
  };
}

std::vector<LayerKind> elementwise_kinds() {
  return {
      {"relu", kUnary, 1, 1, "", "max(x, 0)", {}, unary<ops::relu>},
      {"tanh", kUnary, 1, 1, "", "tanh(x)", {}, unary<ops::tanh>},
      {"sigmoid", kUnary, 1, 1, "", "1 / (1 + exp(-x))", {}, unary<ops::sigmoid>},
      {"softplus", kUnary, 1, 1, "", "log(1 + exp(x))", {}, unary<ops::softplus>},
      {"exp", kUnary, 1, 1, "", "exp(x)", {}, unary<ops::exp>},
      {"log", kUnary, 1, 1, "", "log(x)", {}, unary<ops::log>},
      {"sqrt", kUnary, 1, 1, "", "square root", {}, unary<ops::sqrt>},
      {"square", kUnary, 1, 1, "", "x * x", {}, unary<ops::square>},
      {"neg", kUnary, 1, 1, "", "-x", {}, unary<ops::neg>},
      {"abs", kUnary, 1, 1, "", "|x|", {}, unary<ops::abs>},
      {"scale", kUnary, 1, 1, "factor", "x * factor", {{"factor", kNumber, ""}}, build_scale},
      {"add_scalar", kUnary, 1, 1, "term", "x + term", {{"term", kNumber, ""}}, build_add_scalar},
      {"identity", kUnary, 1, 1, "", "x; gives a value a name", {}, unary<ops::identity>},
      {"add", kBinary, 2, 2, "inputs", "a + b", {}, binary<ops::add>},
      {"sub", kBinary, 2, 2, "inputs", "a - b", {}, binary<ops::sub>},
      {"mul", kBinary, 2, 2, "inputs", "a * b", {}, binary<ops::mul>},
      {"div", kBinary, 2, 2, "inputs", "a / b", {}, binary<ops::div>},
      {"maximum", kBinary, 2, 2, "inputs", "the larger of a and b", {}, binary<ops::maximum>},
      {"minimum", kBinary, 2, 2, "inputs", "the smaller of a and b", {}, binary<ops::minimum>},
  };
}

std::vector<LayerKind> shape_kinds() {
  const std::vector<LayerKey> reduce_keys{{"axes", "a list of axes; negative ones count from the end", "all"},
                                          {"keep_dims", kFlag, "false"}};
  return {
      {"reduce_sum", kReduce, 1, 1, "axes", "sum over axes", reduce_keys, reduce<ops::reduce_sum>},
      {"reduce_mean", kReduce, 1, 1, "axes", "mean over axes", reduce_keys, reduce<ops::reduce_mean>},
      {"reduce_max", kReduce, 1, 1, "axes", "largest value over axes", reduce_keys, reduce<ops::reduce_max>},
      {"softmax", kReduce, 1, 1, "", "softmax over the last axis of a matrix", {}, unary<ops::softmax>},
      {"flatten", kShape, 1, 1, "", "[batch, ...] to the matrix [batch, all the rest]", {}, unary<ops::flatten>},
      {"reshape",
       kShape,
       1,
       1,
       "shape",
       "another shape of each example; the batch stays",
       {{"shape", "a list of sizes without the batch, one may be -1", ""}},
       build_reshape},
      {"transpose",
       kShape,
       1,
       1,
       "axes",
       "axes in another order; 0 is the batch",
       {{"axes", "a list of all axes", ""}},
       build_transpose},
      {"concat",
       kShape,
       1,
       -1,
       "inputs",
       "values one after the other along an axis",
       {{"axis", kWhole, "1"}},
       build_concat},
      {"slice",
       kShape,
       1,
       1,
       "",
       "a part of an axis",
       {{"axis", kWhole, "1"}, {"begin", kWhole, "0"}, {"size", kWhole, ""}},
       build_slice},
      {"broadcast_to",
       kShape,
       1,
       1,
       "shape",
       "repeated to a larger shape",
       {{"shape", "a list of sizes without the batch", ""}},
       build_broadcast_to},
  };
}

std::vector<LayerKind> random_kinds() {
  const LayerKey shape{"shape", "a list of sizes without the batch", "that of the input"};
  return {
      {"dropout",
       kRandom,
       1,
       1,
       "rate",
       "zeroes elements and scales the rest up; off outside training",
       {{"rate", "a number from 0 to 1: how many are zeroed", "1 - keep"},
        {"keep", "a number from 0 to 1", "1 - rate"}},
       build_dropout},
      {"noise",
       kRandom,
       1,
       1,
       "deviation",
       "x plus normal noise",
       {{"deviation", kNumber, "1"}, {"mean", kNumber, "0"}, {"training_only", kFlag, "true"}},
       build_noise},
      {"random_normal",
       kRandom,
       1,
       1,
       "",
       "normal numbers, new at every step",
       {{"deviation", kNumber, "1"}, {"mean", kNumber, "0"}, shape, {"training_only", kFlag, "false"}},
       build_random_normal},
      {"random_uniform",
       kRandom,
       1,
       1,
       "",
       "uniform numbers, new at every step",
       {{"low", kNumber, "0"}, {"high", kNumber, "1"}, shape, {"training_only", kFlag, "false"}},
       build_random_uniform},
      {"constant",
       kRandom,
       0,
       0,
       "value",
       "one value everywhere; its shape has no batch",
       {{"value", kNumber, ""}, {"shape", kDims, "[]"}},
       build_constant},
      {"cross_entropy",
       kScores,
       2,
       2,
       "inputs",
       "-log of each row's probability of its label",
       {},
       binary<ops::cross_entropy>,
       Scoping::named,
       true},
      {"softmax_cross_entropy",
       kScores,
       2,
       2,
       "inputs",
       "cross_entropy(softmax(x)), stable for any x",
       {},
       binary<ops::softmax_cross_entropy>,
       Scoping::named,
       true},
      {"correct",
       kScores,
       2,
       2,
       "inputs",
       "1 where the largest score of a row is its label's, else 0",
       {},
       binary<ops::correct>,
       Scoping::named,
       true},
  };
}

std::vector<LayerKind> all_kinds() {
  std::vector<LayerKind> all;
  for (auto part : {trained_kinds, window_kinds, elementwise_kinds, shape_kinds, random_kinds}) {
    const std::vector<LayerKind> kinds = part();
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = all_kinds();
  return kinds;
}

const LayerKind* find_layer_kind(std::string_view name) {
  const auto& kinds = layer_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const LayerKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

std::vector<std::string> layer_kind_names() {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_kinds()) names.emplace_back(kind.name);
  return names;
}

}  // namespace lockstep::interchange
