#include "interchange/onnx_file.h"

#include <algorithm>
#include <limits>

#include "lockstep/error.h"

namespace lockstep::interchange {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;

/// Oldest accepted operator set; older operators broadcast by other rules.
constexpr int64_t kOldestOpset = 7;

void read_opset(OnnxFile& file) {
  for (const auto& set : file.model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") file.opset = set.version();
  }
  if (file.opset < kOldestOpset) {
    file.refuse("its operator set is " + std::to_string(file.opset) + "; " + std::to_string(kOldestOpset) +
                " or later can be imported");
  }
}

void read_initializers(OnnxFile& file) {
  for (const auto& tensor : file.model.graph().initializer()) {
    const std::string fault = tensor_fault(tensor);
    if (!fault.empty()) file.refuse("initializer '" + printable(tensor.name()) + "' " + fault);
    if (!file.initializers.emplace(tensor.name(), &tensor).second) {
      file.refuse("two initializers have the name '" + printable(tensor.name()) + "'");
    }
  }
}

std::string dimension_text(const onnx::TensorShapeProto::Dimension& dim) {
  if (dim.has_dim_value()) return std::to_string(dim.dim_value());
  return dim.dim_param().empty() ? "?" : printable(dim.dim_param());
}

void read_input_shape(OnnxFile& file, const onnx::ValueInfoProto& input) {
  const auto& type = input.type().tensor_type();
  const std::string subject = "input '" + printable(input.name()) + "' ";
  if (type.elem_type() != onnx::TensorProto::FLOAT) file.refuse(subject + "must be float32");
  std::string text;
  bool open = false;
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    text += (i == 0 ? "" : ", ") + dimension_text(dim);
    const bool fixed = dim.has_dim_value() && dim.dim_value() > 0;
    if (i == 0) {
      file.batch = fixed ? dim.dim_value() : 0;
    } else {
      open = open || !fixed;
      file.input_dims.push_back(fixed ? dim.dim_value() : 1);
    }
  }
  const size_t rank = file.input_dims.size();
  if (rank < 1 || rank > 3) {
    file.refuse(subject + "[" + text + "] must be [batch, channels, height, width] or [batch, features]");
  }
  if (open) file.refuse(subject + "[" + text + "] must have fixed sizes after the batch");
  if (checked_elements(file.input_dims) < 0) file.refuse(subject + "[" + text + "] is too large");
}

void read_input(OnnxFile& file) {
  const onnx::ValueInfoProto* only = nullptr;
  for (const auto& input : file.model.graph().input()) {
    if (file.initializers.contains(input.name())) continue;  // older files list initializers among the inputs too
    if (only != nullptr) {
      file.refuse("it has several inputs ('" + printable(only->name()) + "', '" + printable(input.name()) +
                  "'); only one, the images, can be imported");
    }
    only = &input;
  }
  if (only == nullptr) file.refuse("it has no input");
  file.input = only->name();
  read_input_shape(file, *only);
}

/// Maps each name to the node that makes it.
std::map<std::string, int> find_makers(OnnxFile& file) {
  std::map<std::string, int> makers;
  const GraphProto& graph = file.model.graph();
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (name.empty()) continue;
      const bool fresh = makers.emplace(name, i).second;
      if (!fresh || name == file.input || file.initializers.contains(name)) {
        file.refuse(title(graph.node(i)) + " makes '" + printable(name) + "', which another node or input has made");
      }
      file.made.insert(name);
    }
  }
  return makers;
}

/// Returns the first output, before a softmax at its end, since the loss has its own.
std::string find_scores(const OnnxFile& file, const std::map<std::string, int>& makers) {
  const GraphProto& graph = file.model.graph();
  std::string name = graph.output(0).name();
  for (int steps = 0; steps < graph.node_size(); ++steps) {
    const auto maker = makers.find(name);
    if (maker == makers.end()) break;
    const NodeProto& node = graph.node(maker->second);
    const bool last = node.op_type() == "Softmax" || node.op_type() == "LogSoftmax";
    if ((!last && node.op_type() != "Identity") || node.input_size() == 0) break;
    name = node.input(0);
    if (last) break;
  }
  return name;
}

void find_needed(OnnxFile& file, const std::map<std::string, int>& makers) {
  std::vector<std::string> open{file.scores};
  while (!open.empty()) {
    const auto maker = makers.find(open.back());
    open.pop_back();
    if (maker == makers.end() || !file.needed.insert(maker->second).second) continue;
    const NodeProto& node = file.model.graph().node(maker->second);
    open.insert(open.end(), node.input().begin(), node.input().end());
  }
}

}  // namespace

void OnnxFile::refuse(const std::string& why) const { throw DataError("model file '" + file + "': " + why); }

std::shared_ptr<const OnnxFile> read_onnx(const std::string& bytes, const std::string& file) {
  const auto result = std::make_shared<OnnxFile>();
  result->file = file;
  const bool small = bytes.size() <= static_cast<size_t>(std::numeric_limits<int32_t>::max());
  if (!small || !result->model.ParseFromString(bytes) || !result->model.has_graph()) {
    result->refuse("it is not an ONNX file, or is damaged (" + std::to_string(bytes.size()) + " bytes)");
  }
  read_opset(*result);
  read_initializers(*result);
  read_input(*result);
  const auto makers = find_makers(*result);
  if (result->model.graph().output_size() == 0) result->refuse("it has no output");
  result->scores = find_scores(*result, makers);
  find_needed(*result, makers);
  if (result->needed.empty()) result->refuse("its output '" + printable(result->scores) + "' is not made by any node");
  return result;
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 80;
  std::string text(name.substr(0, kLongest));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  return text + (name.size() > kLongest ? "..." : "");
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t size : dims.first(std::min<size_t>(dims.size(), 10))) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "[" + text + (dims.size() > 10 ? ", ...]" : "]");
}

std::string title(const NodeProto& node) {
  const std::string& name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  return "node '" + printable(name) + "' (" + printable(node.op_type()) + ")";
}

const onnx::AttributeProto* find_attribute(const NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

}  // namespace lockstep::interchange
