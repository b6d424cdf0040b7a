// Writes the nodes of one of our graphs as ONNX nodes. OnnxWriter owns the names and the unfinished GraphProto. An
// exporter of onnx_export_ops.cpp sees one of our nodes through NodeWriter. For one thread; private to this room.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/graph.h"
#include "onnx.pb.h"

namespace lockstep::interchange {

/// A size of an exported tensor: a number, or a multiple of the batch.
struct Dim {
  int64_t size = 1;
  bool batch = false;
  [[nodiscard]] std::string str() const;
};
std::string to_string(std::span<const Dim> dims);

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

/// The same model built for two batch sizes. A dimension that differs is a multiple of the batch.
struct TwoBuilds {
  const graph::Graph* first = nullptr;
  const graph::Graph* second = nullptr;  ///< null: the batch is fixed
  int64_t first_batch = 1;
  int64_t second_batch = 1;

  /// Throws UsageError if a needed node or its attributes differ between the batches. Others, as those of the loss, are
  /// not written.
  void check(const std::vector<bool>& needed) const;
  [[nodiscard]] std::vector<Dim> dims(graph::ValueId id) const;
};

class NodeWriter;

class OnnxWriter {
 public:
  OnnxWriter(TwoBuilds builds, std::span<const float> parameters, onnx::GraphProto& out);

  /// Writes the nodes that `wanted` depend on. Each wanted value gets its own name, in that order.
  void write(std::span<const graph::ValueId> wanted, std::span<const std::string> names);
  void add_input(graph::ValueId id, const std::string& name);
  void add_output(const std::string& name, const std::vector<Dim>& dims);

  /// Adds one ONNX node with one output.
  void node(std::string_view op, const std::vector<std::string>& inputs, const std::string& output,
            const std::vector<OnnxAttribute>& attributes = {});
  [[nodiscard]] std::string fresh_name(const std::string& wish);
  [[nodiscard]] const std::string& name(graph::ValueId id);
  [[nodiscard]] const graph::Graph& graph() const { return *builds_.first; }
  [[nodiscard]] const TwoBuilds& builds() const { return builds_; }
  [[nodiscard]] const std::string& input_name() const { return input_name_; }
  [[nodiscard]] onnx::GraphProto& out() { return out_; }
  [[nodiscard]] size_t parameters() const { return written_parameters_; }
  /// Returns true if a bias_add writes this product or convolution together with its bias.
  [[nodiscard]] bool absorbed(int32_t node) const { return absorbed_.contains(node); }

 private:
  void find_needed(std::span<const graph::ValueId> wanted);
  void write_node(int32_t index);
  void write_parameter(const graph::Node& node, graph::ValueId id);

  TwoBuilds builds_;
  std::span<const float> parameters_;
  onnx::GraphProto& out_;
  std::vector<bool> needed_;
  std::set<int32_t> absorbed_;
  std::map<graph::ValueId, std::string> names_;
  std::set<std::string> taken_;
  std::string input_name_;
  size_t written_parameters_ = 0;
};

/// One of our nodes, for its exporter.
class NodeWriter {
 public:
  NodeWriter(OnnxWriter& writer, int32_t index) : writer_(writer), index_(index) {}

  [[nodiscard]] const graph::Node& node() const { return writer_.graph().node(index_); }
  [[nodiscard]] std::string in(size_t i) const { return writer_.name(node().inputs[i]); }
  [[nodiscard]] const Shape& in_shape(size_t i) const { return writer_.graph().output(node().inputs[i]).type.shape; }
  [[nodiscard]] std::vector<Dim> in_dims(size_t i) const { return writer_.builds().dims(node().inputs[i]); }
  [[nodiscard]] std::vector<Dim> out_dims() const { return writer_.builds().dims({index_, 0}); }
  [[nodiscard]] OnnxWriter& writer() const { return writer_; }

  /// Writes the ONNX node of the result.
  void result(std::string_view op, const std::vector<std::string>& inputs,
              const std::vector<OnnxAttribute>& attributes = {});
  /// Writes an intermediate node; returns the name of its output.
  std::string step(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttribute>& attributes = {});
  std::string scalar(float value);
  std::string ints(const std::vector<int64_t>& values);
  std::string floats(const std::vector<int64_t>& dims, std::span<const float> values);
  /// Returns dimensions as an int64 tensor, computed from the input's if they depend on the batch.
  std::string shape(const std::vector<Dim>& dims);
  /// Returns dimensions for Reshape; the one that depends on the batch is -1.
  std::string reshape_dims(const std::vector<Dim>& dims);
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string constant(const onnx::TensorProto& tensor);

  OnnxWriter& writer_;
  int32_t index_;
};

using NodeExporter = void (*)(NodeWriter&);
/// Returns null if the op has no exporter.
NodeExporter find_exporter(graph::Op op);

}  // namespace lockstep::interchange
