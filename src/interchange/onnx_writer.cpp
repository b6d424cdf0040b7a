#include "interchange/onnx_writer.h"

#include <algorithm>

#include "lockstep/error.h"
#include "ops/op_table.h"

namespace lockstep::interchange {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::ValueId;

void set_raw(onnx::TensorProto& tensor, std::span<const float> values) {
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.set_raw_data(values.data(), values.size_bytes());
}

void set_attribute(onnx::AttributeProto& to, const OnnxAttribute& from) {
  to.set_name(from.name);
  if (const auto* i = std::get_if<int64_t>(&from.value)) {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(*i);
  } else if (const auto* f = std::get_if<float>(&from.value)) {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&from.value)) {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(*s);
  } else {
    to.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : std::get<std::vector<int64_t>>(from.value)) to.add_ints(value);
  }
}

void set_type(onnx::ValueInfoProto& info, const std::string& name, const std::vector<Dim>& dims) {
  info.set_name(name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const Dim& dim : dims) {
    onnx::TensorShapeProto::Dimension& to = *type.mutable_shape()->add_dim();
    if (dim.batch) {
      to.set_dim_param(dim.str());
    } else {
      to.set_dim_value(dim.size);
    }
  }
}

}  // namespace

std::string Dim::str() const {
  if (!batch) return std::to_string(size);
  return size == 1 ? "batch" : "batch*" + std::to_string(size);
}

std::string to_string(std::span<const Dim> dims) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ", ") + dim.str();
  return "[" + text + "]";
}

void TwoBuilds::check(const std::vector<bool>& needed) const {
  if (second == nullptr) return;
  const auto& a = first->nodes();
  const auto& b = second->nodes();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!needed[i]) continue;
    if (i >= b.size() || a[i].op != b[i].op || a[i].attrs != b[i].attrs || a[i].inputs != b[i].inputs) {
      throw UsageError("export: node '" + a[i].name + "' (" + std::string(ops::name(a[i].op)) +
                       ") depends on the batch size; fix it with --batch N");
    }
  }
}

std::vector<Dim> TwoBuilds::dims(ValueId id) const {
  std::vector<Dim> dims;
  for (const int64_t size : first->output(id).type.shape.dims()) dims.push_back({size, false});
  if (second == nullptr) return dims;
  const Shape& other = second->output(id).type.shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (other[static_cast<int>(i)] == dims[i].size) continue;
    dims[i] = {dims[i].size / first_batch, true};
    if (dims[i].size * second_batch != other[static_cast<int>(i)]) {
      throw UsageError("export: a size of '" + first->node(id).name +
                       "' is not a multiple of the batch; fix the batch with --batch N");
    }
  }
  return dims;
}

OnnxWriter::OnnxWriter(TwoBuilds builds, std::span<const float> parameters, onnx::GraphProto& out)
    : builds_(builds), parameters_(parameters), out_(out) {}

void OnnxWriter::add_input(ValueId id, const std::string& name) {
  input_name_ = fresh_name(name);
  names_[id] = input_name_;
  set_type(*out_.add_input(), input_name_, builds_.dims(id));
}

void OnnxWriter::add_output(const std::string& name, const std::vector<Dim>& dims) {
  set_type(*out_.add_output(), name, dims);
}

void OnnxWriter::find_needed(std::span<const ValueId> wanted) {
  const auto& nodes = graph().nodes();
  needed_.assign(nodes.size(), false);
  std::map<int32_t, int> uses;
  for (const ValueId id : wanted) {
    needed_[static_cast<size_t>(id.node)] = true;
    uses[id.node] = 2;  // an output has its own name and cannot be absorbed
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!needed_[i]) continue;
    for (const ValueId input : nodes[i].inputs) {
      needed_[static_cast<size_t>(input.node)] = true;
      ++uses[input.node];
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!needed_[i] || nodes[i].op != Op::bias_add) continue;
    const int32_t producer = nodes[i].inputs[0].node;
    const Op op = graph().node(producer).op;
    if ((op == Op::conv2d || op == Op::matmul) && uses[producer] == 1) absorbed_.insert(producer);
  }
}

void OnnxWriter::write(std::span<const ValueId> wanted, std::span<const std::string> names) {
  find_needed(wanted);
  builds_.check(needed_);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string name = fresh_name(names[i]);
    const Op op = graph().node(wanted[i]).op;
    const bool taken = op == Op::input || op == Op::parameter || names_.contains(wanted[i]);
    if (!taken) names_[wanted[i]] = name;
  }
  for (size_t i = 0; i < needed_.size(); ++i) {
    if (needed_[i] && !absorbed(static_cast<int32_t>(i))) write_node(static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (name(wanted[i]) != names[i]) node("Identity", {name(wanted[i])}, names[i]);
    add_output(names[i], builds_.dims(wanted[i]));
  }
}

void OnnxWriter::write_node(int32_t index) {
  const Node& node = graph().node(index);
  if (node.op == Op::input) {
    if (!names_.contains({index, 0})) throw UsageError("export: scores depend on the input '" + node.name + "'");
    return;
  }
  if (node.op == Op::parameter) {
    write_parameter(node, {index, 0});
    return;
  }
  const NodeExporter exporter = find_exporter(node.op);
  NodeWriter writer(*this, index);
  if (exporter == nullptr) writer.refuse("ONNX files cannot hold this op");
  exporter(writer);
}

void OnnxWriter::write_parameter(const Node& node, ValueId id) {
  const graph::ParameterInfo& info = graph().parameters()[static_cast<size_t>(node.as<graph::ParameterAttrs>().index)];
  onnx::TensorProto& tensor = *out_.add_initializer();
  tensor.set_name(name(id));
  for (const int64_t size : info.shape.dims()) tensor.add_dims(size);
  set_raw(tensor, parameters_.subspan(info.offset, info.count()));
  written_parameters_ += info.count();
}

void OnnxWriter::node(std::string_view op, const std::vector<std::string>& inputs, const std::string& output,
                      const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto& node = *out_.add_node();
  node.set_op_type(std::string(op));
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const OnnxAttribute& attribute : attributes) set_attribute(*node.add_attribute(), attribute);
}

std::string OnnxWriter::fresh_name(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

const std::string& OnnxWriter::name(ValueId id) {
  const auto known = names_.find(id);
  if (known != names_.end()) return known->second;
  const std::string wish = graph().node(id).name + (id.output == 0 ? "" : ":" + std::to_string(id.output));
  return names_.emplace(id, fresh_name(wish)).first->second;
}

void NodeWriter::result(std::string_view op, const std::vector<std::string>& inputs,
                        const std::vector<OnnxAttribute>& attributes) {
  writer_.node(op, inputs, writer_.name({index_, 0}), attributes);
}

std::string NodeWriter::step(std::string_view op, const std::vector<std::string>& inputs,
                             const std::vector<OnnxAttribute>& attributes) {
  std::string name = writer_.fresh_name(node().name + "/" + std::string(op));
  writer_.node(op, inputs, name, attributes);
  return name;
}

std::string NodeWriter::constant(const onnx::TensorProto& tensor) {
  std::string name = writer_.fresh_name(node().name + "/Constant");
  writer_.node("Constant", {}, name);
  onnx::AttributeProto& value = *writer_.out().mutable_node()->rbegin()->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = tensor;
  return name;
}

std::string NodeWriter::scalar(float value) { return floats({}, {&value, 1}); }

std::string NodeWriter::floats(const std::vector<int64_t>& dims, std::span<const float> values) {
  onnx::TensorProto tensor;
  for (const int64_t size : dims) tensor.add_dims(size);
  set_raw(tensor, values);
  return constant(tensor);
}

std::string NodeWriter::ints(const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return constant(tensor);
}

std::string NodeWriter::shape(const std::vector<Dim>& dims) {
  std::vector<std::string> parts;
  std::vector<int64_t> known;
  const auto flush = [&] {
    if (!known.empty()) parts.push_back(ints(known));
    known.clear();
  };
  for (const Dim& dim : dims) {
    if (!dim.batch) {
      known.push_back(dim.size);
      continue;
    }
    flush();
    const std::string batch = step("Slice", {step("Shape", {writer_.input_name()}), ints({0}), ints({1})});
    parts.push_back(dim.size == 1 ? batch : step("Mul", {batch, ints({dim.size})}));
  }
  flush();
  if (parts.empty()) return ints({});
  return parts.size() == 1 ? parts.front() : step("Concat", parts, {{"axis", int64_t{0}}});
}

std::string NodeWriter::reshape_dims(const std::vector<Dim>& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(dim.batch ? -1 : dim.size);
  if (std::count(sizes.begin(), sizes.end(), -1) > 1) return shape(dims);
  return ints(sizes);
}

void NodeWriter::refuse(const std::string& why) const {
  throw UsageError("export: node '" + node().name + "' is a " + std::string(ops::name(node().op)) + ": " + why);
}

}  // namespace lockstep::interchange
