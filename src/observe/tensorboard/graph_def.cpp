#include "observe/tensorboard/graph_def.h"

#include <set>

#include "ops/op_table.h"

namespace lockstep::observe {
namespace {

using graph::Node;
using graph::Op;

constexpr std::string_view kBackward = "gradients/";
constexpr int kProducer = 27;  ///< version of the graph format

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// Returns a name with a letter or digit in front: "_" and "^" have a special meaning there, and empty scopes are
/// invalid.
std::string clean_name(const Node& node) {
  std::string name;
  for (const char c : node.name) {
    if (c == '/' && (name.empty() || name.back() == '/')) continue;
    name += is_word(c) || c == '_' || c == '.' || c == '-' || c == '/' ? c : '_';
  }
  while (!name.empty() && name.back() == '/') name.pop_back();
  if (name.empty() || !is_word(name[0])) name.insert(0, "n");
  if (node.backward && !name.starts_with(kBackward)) name.insert(0, kBackward);
  return name;
}

class Names {
 public:
  std::string unique(const std::string& name) {
    std::string result = name;
    for (int n = 1; !used_.insert(result).second; ++n) result = name + "_" + std::to_string(n);
    return result;
  }

 private:
  std::set<std::string> used_;
};

tensorboard::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return tensorboard::FLOAT;
    case DType::bf16:
      return tensorboard::BFLOAT16;
    case DType::f16:
      return tensorboard::HALF;
    case DType::i32:
      return tensorboard::INT32;
    case DType::i64:
      return tensorboard::INT64;
    case DType::u8:
      return tensorboard::UINT8;
  }
  return tensorboard::INVALID;
}

std::string op_text(Op op) {
  // TensorBoard draws a constant small, beside the node that uses it, if its op is "Const".
  return op == Op::constant ? "Const" : std::string(ops::name(op));
}

std::string device_of(const Node& node, const Devices& devices) {
  if (node.op != Op::parameter || !devices.parameter) return devices.compute;
  return devices.parameter(static_cast<size_t>(node.as<graph::ParameterAttrs>().index));
}

void describe_outputs(const Node& node, tensorboard::NodeDef& def) {
  auto& attributes = *def.mutable_attr();
  tensorboard::AttrValue::ListValue& shapes = *attributes["_output_shapes"].mutable_list();
  for (const graph::Output& output : node.outputs) {
    tensorboard::TensorShapeProto& shape = *shapes.add_shape();
    for (const int64_t size : output.type.shape.dims()) shape.add_dim()->set_size(size);
  }
  if (!node.outputs.empty()) attributes["dtype"].set_type(type_of(node.outputs[0].type.dtype));
}

}  // namespace

tensorboard::GraphDef graph_def(const Graph& graph, const Devices& devices) {
  tensorboard::GraphDef def;
  def.mutable_versions()->set_producer(kProducer);
  Names names;
  for (const Node& node : graph.nodes()) {
    tensorboard::NodeDef& added = *def.add_node();
    added.set_name(names.unique(clean_name(node)));
    added.set_op(op_text(node.op));
    added.set_device(device_of(node, devices));
    for (const graph::ValueId& input : node.inputs) {
      const std::string& from = def.node(input.node).name();
      added.add_input(input.output == 0 ? from : from + ":" + std::to_string(input.output));
    }
    describe_outputs(node, added);
  }
  return def;
}

}  // namespace lockstep::observe
