// Builds one of our graphs from an ONNX file for one batch size. The batch is then a number, so everything a file
// computes from shapes is known while building (Known) and leaves no nodes. OnnxBuilder holds the meaning of names so
// far. An importer of onnx_import_ops.cpp or onnx_fold.cpp sees one ONNX node through NodeReader. For one thread;
// private to this room.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "interchange/onnx_file.h"
#include "lockstep/nn.h"

namespace lockstep::interchange {

/// The meaning of a name of the file.
using Item = std::variant<graph::Value, Known>;

class OnnxBuilder {
 public:
  /// Without `values` the parameters start at zero, to try a graph without copying them.
  OnnxBuilder(const OnnxFile& file, graph::Graph& graph, const nn::BuildRequest& request, bool values)
      : file_(file), graph_(graph), request_(request), values_(values) {}

  /// Builds the nodes that the scores need and returns the scores. Throws DataError for parts that cannot be imported
  /// and ShapeError for shapes that do not fit; both name the node.
  graph::Value build(graph::Value images);

  [[nodiscard]] const OnnxFile& file() const { return file_; }
  [[nodiscard]] graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const nn::BuildRequest& request() const { return request_; }
  /// Returns the item of that name, for a node that reads it.
  const Item& item(const std::string& name, const onnx::NodeProto& reader);
  void set(const std::string& name, Item item) { items_.insert_or_assign(name, std::move(item)); }

 private:
  void run(const onnx::NodeProto& node);
  Item read_initializer(const std::string& name, const onnx::TensorProto& tensor);
  [[nodiscard]] std::string scope_of(const onnx::NodeProto& node) const;

  const OnnxFile& file_;
  graph::Graph& graph_;
  const nn::BuildRequest& request_;
  bool values_;
  std::map<std::string, Item> items_;
};

class NodeReader {
 public:
  NodeReader(OnnxBuilder& builder, const onnx::NodeProto& node) : builder_(builder), node_(node) {}

  [[nodiscard]] const onnx::NodeProto& node() const { return node_; }
  [[nodiscard]] const OnnxBuilder& builder() const { return builder_; }
  [[nodiscard]] size_t inputs() const { return static_cast<size_t>(node_.input_size()); }
  [[nodiscard]] bool has(size_t i) const { return i < inputs() && !node_.input(static_cast<int>(i)).empty(); }
  /// Returns input i as a tensor of the graph.
  graph::Value value(size_t i);
  /// Returns input i if it is known, else null.
  const Known* known(size_t i);
  /// Returns input i as known integers; refuses the node for any other input.
  const std::vector<int64_t>& ints(size_t i);

  int64_t attribute(std::string_view name, int64_t otherwise) const;
  float attribute(std::string_view name, float otherwise) const;
  std::string attribute(std::string_view name, const std::string& otherwise) const;
  [[nodiscard]] std::optional<std::vector<int64_t>> list(std::string_view name) const;
  /// Refuses the node unless the attribute is absent or has this value.
  void require(std::string_view name, int64_t only) const;
  /// Returns a list from input i, or from the attribute in older operator sets; unset if both are absent.
  std::optional<std::vector<int64_t>> input_or_list(size_t i, std::string_view name);

  /// Returns the axis counted from 0.
  [[nodiscard]] int axis(int64_t given, size_t rank) const;

  void result(graph::Value value);
  void result(Known known);
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Item& item(size_t i);

  OnnxBuilder& builder_;
  const onnx::NodeProto& node_;
};

/// Return the sizes after Unsqueeze and Squeeze of `dims`; refuse the node if they do not fit.
std::vector<int64_t> unsqueezed(NodeReader& r, std::vector<int64_t> dims);
std::vector<int64_t> squeezed(NodeReader& r, const std::vector<int64_t>& dims);

using NodeImporter = void (*)(NodeReader&);
/// Returns the importer for nodes with tensors of the graph; null if the op has none.
NodeImporter find_importer(std::string_view op);
/// Returns the importer for nodes that have only known integers as inputs, and for nodes that make them.
NodeImporter find_constant_folder(std::string_view op);
/// Returns "Abs, Add, ...".
std::string importable_ops();

}  // namespace lockstep::interchange
