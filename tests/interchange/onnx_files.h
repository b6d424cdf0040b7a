// Small ONNX files for tests, built message by message.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnx.pb.h"

namespace lockstep::testing {

using Names = std::vector<std::string>;
using Dims = std::vector<int64_t>;

struct OnnxMaker {
  onnx::ModelProto model;

  OnnxMaker() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    model.mutable_graph()->set_name("made");
  }

  /// An input or output; a size of -1 is open.
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const Dims& dims) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t size : dims) {
      auto& dim = *type.mutable_shape()->add_dim();
      size < 0 ? dim.set_dim_param("n") : dim.set_dim_value(size);
    }
  }
  OnnxMaker& input(const std::string& name, const Dims& dims) {
    describe(*model.mutable_graph()->add_input(), name, dims);
    return *this;
  }
  OnnxMaker& output(const std::string& name) {
    describe(*model.mutable_graph()->add_output(), name, {-1, 10});
    return *this;
  }

  onnx::NodeProto& node(const std::string& op, const Names& inputs, const std::string& output) {
    onnx::NodeProto& node = *model.mutable_graph()->add_node();
    node.set_op_type(op);
    node.set_name(output + "_node");
    for (const std::string& name : inputs) node.add_input(name);
    node.add_output(output);
    return node;
  }
  static void ints(onnx::NodeProto& node, const std::string& name, const Dims& values) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }
  static void integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }

  /// Weights that count up in hundredths.
  onnx::TensorProto& weights(const std::string& name, const Dims& dims) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (const int64_t size : dims) {
      tensor.add_dims(size);
      elements *= size;
    }
    for (int64_t i = 0; i < elements; ++i) tensor.add_float_data(static_cast<float>(i % 7) / 100.0F);
    return tensor;
  }
  onnx::TensorProto& integers(const std::string& name, const Dims& values) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return tensor;
  }

  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
};

/// x [n, 1, 2, 2] -> Flatten -> Gemm with w [4, 3] and b [3] -> y.
inline OnnxMaker small_onnx() {
  OnnxMaker maker;
  maker.input("x", {-1, 1, 2, 2}).output("y");
  maker.weights("fc.weight", {4, 3});
  maker.weights("fc.bias", {3});
  maker.node("Flatten", {"x"}, "flat");
  maker.node("Gemm", {"flat", "fc.weight", "fc.bias"}, "y");
  return maker;
}

}  // namespace lockstep::testing
