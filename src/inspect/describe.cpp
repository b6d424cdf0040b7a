#include "inspect/describe.h"

#include <algorithm>
#include <array>

#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "ops/op_table.h"
#include "optim/optimizer.h"
#include "program/passes.h"
#include "settings/machine.h"

namespace lockstep::inspect {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;

constexpr std::string_view kBackward = "gradients/";

uint64_t elements(const Shape& shape) { return static_cast<uint64_t>(shape.elements()); }

const Shape& input_shape(const Graph& graph, const Node& node, size_t i) {
  return graph.output(node.inputs[i]).type.shape;
}

uint64_t matmul_flops(const Graph& graph, const Node& node) {
  const auto& attrs = node.as<graph::MatMulAttrs>();
  const Shape& a = input_shape(graph, node, 0);
  const auto inner = static_cast<uint64_t>(attrs.trans_a ? a[0] : a[1]);
  return 2 * elements(node.outputs[0].type.shape) * inner;
}

/// Counts two operations per multiplication of a weight with a pixel, the same for all three passes.
uint64_t conv_flops(const Shape& weights, const Shape& dst) {
  return 2 * elements(dst) * static_cast<uint64_t>(weights.elements(1, 4));
}

uint64_t window_cells(const Node& node) {
  const auto& window = node.as<graph::PoolAttrs>().window;
  return static_cast<uint64_t>(window.kernel_h * window.kernel_w);
}

/// Returns true for ops that bring or arrange values and compute nothing.
bool only_moves(Op op) {
  constexpr std::array kOps{Op::input, Op::parameter, Op::constant, Op::reshape, Op::transpose,   Op::concat,
                            Op::slice, Op::pad_slice, Op::identity, Op::reorder, Op::broadcast_to};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

/// How names of nodes say their layer: its outermost scope, or, where scopes are those of another program's modules
/// ("features/0/conv2d"), all but the last part.
enum class Scopes : uint8_t { outermost, innermost };

/// Returns the layer of a forward node.
std::string layer_name(const std::string& node_name, Scopes scopes) {
  const size_t end = scopes == Scopes::outermost ? node_name.find('/') : node_name.rfind('/');
  return node_name.substr(0, end);
}

/// True if the node is in the layer's scope, or is the layer.
bool belongs_to(std::string_view node_name, const std::string& layer) {
  if (node_name.starts_with(kBackward)) node_name.remove_prefix(kBackward.size());
  return node_name.starts_with(layer) && (node_name.size() == layer.size() || node_name[layer.size()] == '/');
}

bool is_source(const Node& node) { return node.op == Op::input || node.op == Op::constant; }

LayerInfo& layer_of(std::vector<LayerInfo>& layers, const std::string& name) {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const auto& layer) { return layer.name == name; });
  if (found != layers.end()) return *found;
  layers.emplace_back();
  layers.back().name = name;
  return layers.back();
}

void add_forward(std::vector<LayerInfo>& layers, const Graph& graph, const Node& node, Scopes scopes) {
  LayerInfo& layer = layer_of(layers, layer_name(node.name, scopes));
  if (node.op == Op::parameter) {
    layer.parameters += elements(node.outputs[0].type.shape);
    return;
  }
  layer.ops.append(layer.ops.empty() ? "" : " + ").append(ops::definition(node.op).name);
  layer.output = node.outputs[0].type.shape;
  layer.forward_flops += flops(graph, node);
}

void add_backward(ModelDescription& description, const Graph& graph, const Node& node) {
  const uint64_t cost = flops(graph, node);
  description.backward_flops += cost;
  LayerInfo* found = nullptr;
  for (LayerInfo& layer : description.layers) {
    const bool closer = found == nullptr || layer.name.size() > found->name.size();
    if (closer && belongs_to(node.name, layer.name)) found = &layer;
  }
  if (found != nullptr) found->backward_flops += cost;
}

/// Returns the graph without unused parts, such as the gradient of the images.
Graph needed_part(const Graph& graph, const nn::ModelGraph& built, const std::vector<graph::Value>& gradients) {
  program::Work work{graph, {built.loss.id()}, {}};
  if (built.correct.valid()) work.outputs.push_back(built.correct.id());
  for (const graph::Value& gradient : gradients) work.gradients.push_back(gradient.id());
  return program::remove_dead_nodes(work).graph;
}

void add_layers(ModelDescription& description, const Graph& graph, Scopes scopes) {
  for (const Node& node : graph.nodes()) {
    if (!node.backward && !is_source(node)) add_forward(description.layers, graph, node, scopes);
  }
  for (const LayerInfo& layer : description.layers) description.forward_flops += layer.forward_flops;
  for (const Node& node : graph.nodes()) {
    if (node.backward) add_backward(description, graph, node);
  }
}

void add_program(ModelDescription& description, const program::Program& program) {
  MemoryInfo& memory = description.memory;
  memory.arena_bytes = program.memory().arena_bytes;
  memory.unshared_bytes = program.memory().unshared_bytes;
  memory.parameter_bytes = memory.gradient_bytes = description.parameters * sizeof(float);
  const int slots = optim::state_slots(optim::parse_method(description.optimizer));
  memory.optimizer_bytes = memory.parameter_bytes * static_cast<size_t>(slots);
  for (const program::KernelInfo& kernel : program.kernels()) {
    if (!kernel.implementation.empty()) description.kernels.push_back(kernel);
  }
}

}  // namespace

uint64_t flops(const Graph& graph, const Node& node) {
  if (only_moves(node.op)) return 0;
  const Shape& out = node.outputs[0].type.shape;
  switch (node.op) {
    case Op::matmul:
      return matmul_flops(graph, node);
    case Op::conv2d:
      return conv_flops(input_shape(graph, node, 1), out);
    case Op::conv2d_grad_input:
      return conv_flops(input_shape(graph, node, 1), input_shape(graph, node, 0));
    case Op::conv2d_grad_weights:
      return conv_flops(out, input_shape(graph, node, 1));
    case Op::max_pool:
    case Op::avg_pool:
      return elements(out) * window_cells(node);
    case Op::max_pool_grad:
      return elements(input_shape(graph, node, 1)) * window_cells(node);
    case Op::avg_pool_grad:
      return elements(input_shape(graph, node, 0)) * window_cells(node);
    case Op::reduce_sum:
    case Op::reduce_mean:
    case Op::reduce_max:
    case Op::bias_grad:
      return elements(input_shape(graph, node, 0));
    case Op::softmax:
    case Op::softmax_grad:
    case Op::softmax_cross_entropy:
      return 5 * elements(input_shape(graph, node, 0));
    default:
      return elements(out);
  }
}

ModelDescription describe(const DescribeRequest& request) {
  const nn::ModelDef& model = *request.model;
  ModelDescription description;
  description.name = model.name;
  description.description = model.description;
  description.options = nn::resolve_options(model, request.options);
  description.image = request.image.rank() > 0 ? request.image : model.image;
  description.batch = request.batch;
  description.optimizer =
      request.optimizer.empty() ? nn::defaults_for(model, description.options).optimizer : request.optimizer;

  const int64_t classes = request.classes > 0 ? request.classes : model.classes;
  Graph graph;
  const nn::ModelGraph built =
      nn::build(graph, model, {request.batch, true, description.image, classes, description.options});
  const std::vector<graph::Value> gradients = ops::gradients(built.loss);
  description.parameters = graph.parameter_count();
  description.parameter_table = graph.parameters();
  const Scopes scopes = model.file.ends_with(".onnx") ? Scopes::innermost : Scopes::outermost;
  add_layers(description, needed_part(graph, built, gradients), scopes);
  const auto backend = settings::make_backend(request.backend, request.threads,
                                              {.exact_conv = request.exact_conv, .precision = request.precision});
  std::vector<graph::Value> outputs{built.loss};
  if (built.correct.valid()) outputs.push_back(built.correct);
  try {
    add_program(description, program::Program(std::move(graph), outputs, gradients, *backend));
  } catch (const MemoryError& error) {
    throw MemoryError("model '" + model.name + "' with a batch of " + std::to_string(request.batch) + " " +
                      error.what());
  }
  return description;
}

size_t parameter_count(const nn::ModelDef& model) {
  graph::Graph graph;
  nn::BuildRequest request;
  request.image = model.image;
  request.classes = model.classes;
  nn::build(graph, model, request);
  return graph.parameter_count();
}

}  // namespace lockstep::inspect
