// The dataflow graph: nodes are operations, edges are tensors. A Graph owns its nodes, which are always in
// topological order; a Value is a light handle to one output of one node and is valid as long as its graph.
// Graphs are built by the free functions of lockstep/ops.h and belong to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/shape.h"

namespace lockstep::graph {

/// Every operation of the engine. src/ops/op_table.cpp has one line for each: its name, rules and description.
enum class Op : uint8_t {
  input,
  parameter,
  constant,
  matmul,
  bias_add,
  bias_grad,
  conv2d,
  conv2d_grad_input,
  conv2d_grad_weights,
  max_pool,
  max_pool_grad,
  avg_pool,
  avg_pool_grad,
  lrn,
  lrn_grad,
  affine_grid,
  affine_grid_grad,
  bilinear_sample,
  bilinear_sample_grad_image,
  bilinear_sample_grad_grid,
  relu,
  tanh,
  sigmoid,
  softplus,
  exp,
  log,
  sqrt,
  square,
  neg,
  abs,
  scale,
  add_scalar,
  relu_grad,
  tanh_grad,
  sigmoid_grad,
  softplus_grad,
  abs_grad,
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  max_grad,
  softmax,
  softmax_grad,
  cross_entropy,
  cross_entropy_grad,
  softmax_cross_entropy,
  softmax_cross_entropy_grad,
  correct,
  reduce_sum,
  reduce_mean,
  reduce_max,
  broadcast_to,
  reshape,
  transpose,
  concat,
  slice,
  pad_slice,
  identity,
  dropout,
  random_uniform,
  random_normal,
  reorder,
};
constexpr int kOpCount = static_cast<int>(Op::reorder) + 1;

/// An activation folded into the op that produces its input.
enum class Activation : uint8_t { none, relu, tanh, sigmoid };

struct NoAttrs {
  friend bool operator==(const NoAttrs&, const NoAttrs&) = default;
};
struct ParameterAttrs {
  int index = 0;
  friend bool operator==(const ParameterAttrs&, const ParameterAttrs&) = default;
};
struct ScalarAttrs {
  float value = 0;
  friend bool operator==(const ScalarAttrs&, const ScalarAttrs&) = default;
};
struct MatMulAttrs {
  bool trans_a = false;
  bool trans_b = false;
  bool bias = false;
  Activation activation = Activation::none;
  friend bool operator==(const MatMulAttrs&, const MatMulAttrs&) = default;
};
/// A window that slides over the last two axes: its size, stride and padding (zeros) on each side.
struct Window {
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  friend bool operator==(const Window&, const Window&) = default;
};
struct ConvAttrs {
  Window window;
  bool bias = false;
  Activation activation = Activation::none;
  friend bool operator==(const ConvAttrs&, const ConvAttrs&) = default;
};
struct PoolAttrs {
  Window window;
  bool through_relu = false;  ///< for max_pool_grad of a ReLU's output: returns the gradient of the ReLU's input
  friend bool operator==(const PoolAttrs&, const PoolAttrs&) = default;
};
/// Local response normalisation over the `radius` channels on either side; alpha is not divided by the window's size.
struct LrnAttrs {
  int64_t radius = 2;
  float alpha = 1e-4F;
  float beta = 0.75F;
  float bias = 2.0F;
  friend bool operator==(const LrnAttrs&, const LrnAttrs&) = default;
};
/// The mapping of a sampling grid's coordinates, -1 to 1, onto an image of width W (height likewise).
/// study: the grid is linspace(-1, 1). Coordinate x means pixel (x + 1) * W / 2. Corners are clipped to the image
/// before their weights are computed, which leaves zero beyond the outermost pixels' centres.
/// half_pixel: the grid is the pixels' centres. Coordinate x means pixel ((x + 1) * W - 1) / 2. Beyond the image lie
/// zeros (align_corners=False of other frameworks).
enum class Sampling : uint8_t { study, half_pixel };
struct AffineGridAttrs {
  int64_t height = 1, width = 1;
  Sampling sampling = Sampling::study;
  friend bool operator==(const AffineGridAttrs&, const AffineGridAttrs&) = default;
};
struct SampleAttrs {
  Sampling sampling = Sampling::study;
  friend bool operator==(const SampleAttrs&, const SampleAttrs&) = default;
};
struct ReduceAttrs {
  uint32_t axes = 0;  ///< bit i: axis i is reduced
  bool keep_dims = false;
  friend bool operator==(const ReduceAttrs&, const ReduceAttrs&) = default;
};
struct TransposeAttrs {
  Shape permutation;
  friend bool operator==(const TransposeAttrs&, const TransposeAttrs&) = default;
};
/// A part of one axis: for concat (axis), slice and pad_slice (begin in the larger tensor).
struct AxisAttrs {
  int axis = 0;
  int64_t begin = 0;
  friend bool operator==(const AxisAttrs&, const AxisAttrs&) = default;
};
/// A random op's stream tells it apart from the others of its graph; a and b are rate, or low and high, or mean and
/// deviation.
struct RandomAttrs {
  uint32_t stream = 0;
  float a = 0, b = 0;
  friend bool operator==(const RandomAttrs&, const RandomAttrs&) = default;
};
using Attrs = std::variant<NoAttrs, ParameterAttrs, ScalarAttrs, MatMulAttrs, ConvAttrs, PoolAttrs, LrnAttrs,
                           AffineGridAttrs, SampleAttrs, ReduceAttrs, TransposeAttrs, AxisAttrs, RandomAttrs>;

/// The order of a tensor's elements in memory. `plain` is row-major; `batch_blocked` is [N/b][rest...][b], b examples
/// side by side; `channel_blocked` is oneDNN's [N][C/b][H][W][b]. Everything outside a Program sees plain.
struct Layout {
  enum class Kind : uint8_t { plain, batch_blocked, channel_blocked };
  Kind kind = Kind::plain;
  int block = 1;

  [[nodiscard]] bool plain() const { return kind == Kind::plain; }
  [[nodiscard]] std::string str() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Returns the number of elements that a tensor takes in memory in a layout, padding included.
int64_t stored_elements(const Shape& shape, const Layout& layout);

struct ValueId {
  int32_t node = -1;
  int32_t output = 0;
  [[nodiscard]] bool valid() const { return node >= 0; }
  friend bool operator==(const ValueId&, const ValueId&) = default;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Output {
  TensorType type;
  Layout layout;
};

struct Node {
  Op op = Op::identity;
  std::string name;  ///< unique in the graph, scopes separated by '/'
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<Output> outputs;
  bool backward = false;

  template <class T>
  [[nodiscard]] const T& as() const {
    return std::get<T>(attrs);
  }
};

/// A parameter's initial values: zeros, a constant, uniform in [-scale, scale], or normal with deviation `scale`.
struct Initializer {
  enum class Kind : uint8_t { zeros, constant, uniform, normal, list };
  Kind kind = Kind::zeros;
  float scale = 0;
  std::vector<float> values;  ///< for `list`: one value per element

  static Initializer zeros() { return {}; }
  static Initializer constant(float value) { return {Kind::constant, value, {}}; }
  static Initializer uniform(float limit) { return {Kind::uniform, limit, {}}; }
  static Initializer normal(float deviation) { return {Kind::normal, deviation, {}}; }
  static Initializer xavier_uniform(int64_t fan_in, int64_t fan_out);
  static Initializer list(std::vector<float> values) { return {Kind::list, 0, std::move(values)}; }
};

/// A parameter's place in the one contiguous, plain, unpadded parameter buffer (and in the gradient buffer).
struct ParameterInfo {
  std::string name;
  Shape shape;
  size_t offset = 0;  ///< elements
  Initializer initializer;

  [[nodiscard]] size_t count() const { return static_cast<size_t>(shape.elements()); }
};

class Graph;

class Value {
 public:
  Value() = default;
  Value(Graph* owner, ValueId id) : graph_(owner), id_(id) {}

  [[nodiscard]] Graph& graph() const { return *graph_; }
  [[nodiscard]] ValueId id() const { return id_; }
  [[nodiscard]] bool valid() const { return graph_ != nullptr && id_.valid(); }
  [[nodiscard]] const TensorType& type() const;
  [[nodiscard]] const Shape& shape() const { return type().shape; }
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] const std::string& name() const;

 private:
  Graph* graph_ = nullptr;
  ValueId id_;
};

class Graph {
 public:
  /// Adds a node. The caller has checked the op's rules (the functions of lockstep/ops.h do). The node's name is the
  /// current scope plus `name`, made unique. Inputs must exist.
  Value add(Op op, std::string_view name, Attrs attrs, std::vector<ValueId> inputs, std::vector<Output> outputs);

  /// Adds a tensor that the caller supplies at every run.
  Value input(std::string_view name, TensorType type);
  /// Adds a trained tensor. Its place in the parameter buffer follows the order of creation.
  Value parameter(std::string_view name, const Shape& shape, Initializer initializer);

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  [[nodiscard]] const Node& node(ValueId id) const { return node(id.node); }
  [[nodiscard]] const Output& output(ValueId id) const { return node(id).outputs[static_cast<size_t>(id.output)]; }
  [[nodiscard]] Value value(ValueId id) { return {this, id}; }
  [[nodiscard]] const std::vector<ParameterInfo>& parameters() const { return parameters_; }
  /// Returns the value of parameter `index`.
  [[nodiscard]] Value parameter_value(int index);
  /// Returns the number of elements of all parameters together.
  [[nodiscard]] size_t parameter_count() const;

  /// Returns the number of a new random stream, in order of creation.
  uint32_t next_stream() { return next_stream_++; }

  /// Marks nodes added from now on as part of the backward pass, or no longer.
  void set_backward(bool on) { backward_ = on; }

  void push_scope(std::string_view name);
  void pop_scope();

  /// Returns an empty graph with the same parameters and streams; for passes.
  [[nodiscard]] Graph shell() const;
  /// Copies a node of another graph, with its inputs replaced and its name kept; for passes.
  int32_t copy(const Node& node, std::vector<ValueId> inputs);
  Node& edit(int32_t index) { return nodes_[static_cast<size_t>(index)]; }

 private:
  std::string unique_name(std::string_view name);

  std::vector<Node> nodes_;
  std::vector<ParameterInfo> parameters_;
  std::vector<ValueId> parameter_values_;
  std::vector<std::string> scopes_;
  std::map<std::string, int> name_uses_;
  uint32_t next_stream_ = 0;
  bool backward_ = false;
};

/// Prefixes the names of nodes built during its life with "name/": `Scope scope(graph, "conv1");`
class Scope {
 public:
  Scope(Graph& graph, std::string_view name) : graph_(graph) { graph_.push_scope(name); }
  ~Scope() { graph_.pop_scope(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph& graph_;
};

}  // namespace lockstep::graph
