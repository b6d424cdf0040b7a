#include "interchange/onnx_reader.h"

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using graph::Value;
using onnx::NodeProto;

/// Returns a name for our graphs, where '/' separates scopes: "conv1.weight" -> "conv1/weight".
std::string parameter_name(const std::string& name) {
  std::string result = printable(name);
  std::replace(result.begin(), result.end(), '.', '/');
  result.erase(0, result.find_first_not_of('/'));
  return result.empty() ? "parameter" : result;
}

void check_memory(const Value& value) {
  if (checked_elements(value.shape().dims()) >= 0) return;
  double bytes = sizeof(float);
  for (const int64_t size : value.shape().dims()) bytes *= static_cast<double>(size);
  throw ShapeError("has the result " + value.shape().str() + " of " + std::to_string(bytes / 1e9) + " GB");
}

}  // namespace

Value OnnxBuilder::build(Value images) {
  items_.emplace(file_.input, images);
  for (const int i : file_.needed) {
    const NodeProto& node = file_.model.graph().node(i);
    try {
      run(node);
    } catch (const ShapeError& error) {
      throw ShapeError("model file '" + file_.file + "': " + title(node) + ": " + error.what());
    }
  }
  const Item& scores = items_.at(file_.scores);
  if (const auto* value = std::get_if<Value>(&scores)) return *value;
  file_.refuse("its output '" + printable(file_.scores) + "' does not depend on the input");
}

void OnnxBuilder::run(const NodeProto& node) {
  NodeReader reader(*this, node);
  if (!node.domain().empty() && node.domain() != "ai.onnx") {
    reader.refuse("it is an operator of '" + printable(node.domain()) + "'; the standard ones can be imported");
  }
  bool all_known = node.input_size() > 0;
  for (const std::string& name : node.input()) {
    if (name.empty()) continue;
    const auto* known = std::get_if<Known>(&item(name, node));
    all_known = all_known && known != nullptr && !known->is_float;
  }
  NodeImporter importer = find_constant_folder(node.op_type());
  const bool makes_known = node.op_type() == "Shape" || node.input_size() == 0;
  if (importer == nullptr || !(all_known || makes_known)) importer = find_importer(node.op_type());
  if (importer == nullptr) reader.refuse("this op cannot be imported; these can: " + importable_ops());
  {
    std::optional<graph::Scope> scope;
    const std::string layer = scope_of(node);
    if (!layer.empty()) scope.emplace(graph_, layer);
    importer(reader);
  }
  if (node.output_size() == 0 || !items_.contains(node.output(0))) reader.refuse("it has no output");
  if (const auto* value = std::get_if<Value>(&items_.at(node.output(0)))) check_memory(*value);
}

const Item& OnnxBuilder::item(const std::string& name, const NodeProto& reader) {
  const auto found = items_.find(name);
  if (found != items_.end()) return found->second;
  const auto initializer = file_.initializers.find(name);
  if (initializer != file_.initializers.end()) {
    return items_.emplace(name, read_initializer(name, *initializer->second)).first->second;
  }
  const std::string subject = title(reader) + " reads '" + printable(name) + "', which ";
  if (file_.made.contains(name)) {
    file_.refuse(subject + "no earlier node makes: nodes must be in order, without cycles");
  }
  file_.refuse(subject + "is neither an input, an initializer nor the output of a node");
}

Item OnnxBuilder::read_initializer(const std::string& name, const onnx::TensorProto& tensor) {
  if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() == 0) {
    Known known;
    std::string why_not;
    if (!to_known(tensor, known, why_not)) file_.refuse("initializer '" + printable(name) + "' " + why_not);
    return known;
  }
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (dims.size() > Shape::kMaxRank || checked_elements(dims) < 1) {
    file_.refuse("initializer '" + printable(name) + "' " + dims_text(dims) + " must have elements and at most " +
                 std::to_string(Shape::kMaxRank) + " dimensions");
  }
  auto start = values_ ? graph::Initializer::list(float_values(tensor)) : graph::Initializer::zeros();
  return graph_.parameter(parameter_name(name), Shape(dims), std::move(start));
}

/// Returns the scope of a node with parameters: the layer in the parameters' names.
std::string OnnxBuilder::scope_of(const NodeProto& node) const {
  for (const std::string& name : node.input()) {
    if (!file_.initializers.contains(name)) continue;
    const auto* value = std::get_if<Value>(&items_.at(name));
    if (value == nullptr) continue;
    return value->name().substr(0, std::min(value->name().rfind('/'), value->name().size()));
  }
  return "";
}

const Item& NodeReader::item(size_t i) {
  if (!has(i)) refuse("its input " + std::to_string(i) + " is missing");
  return builder_.item(node_.input(static_cast<int>(i)), node_);
}

Value NodeReader::value(size_t i) {
  const Item& found = item(i);
  if (const auto* value = std::get_if<Value>(&found)) return *value;
  const Known& known = std::get<Known>(found);
  if (!known.is_float) refuse("its input " + std::to_string(i) + " must be float32");
  if (known.dims.size() > Shape::kMaxRank) refuse("its input " + std::to_string(i) + " has too many dimensions");
  return ops::constant(builder_.graph(), Shape(known.dims), known.value);
}

const Known* NodeReader::known(size_t i) { return has(i) ? std::get_if<Known>(&item(i)) : nullptr; }

const std::vector<int64_t>& NodeReader::ints(size_t i) {
  const Known* found = std::get_if<Known>(&item(i));
  if (found == nullptr || found->is_float) {
    refuse("its input " + std::to_string(i) + " must be integers computed from shapes only");
  }
  return found->ints;
}

int64_t NodeReader::attribute(std::string_view name, int64_t otherwise) const {
  const auto* found = find_attribute(node_, name);
  return found == nullptr ? otherwise : found->i();
}

float NodeReader::attribute(std::string_view name, float otherwise) const {
  const auto* found = find_attribute(node_, name);
  return found == nullptr ? otherwise : found->f();
}

std::string NodeReader::attribute(std::string_view name, const std::string& otherwise) const {
  const auto* found = find_attribute(node_, name);
  return found == nullptr ? otherwise : found->s();
}

std::optional<std::vector<int64_t>> NodeReader::list(std::string_view name) const {
  const auto* found = find_attribute(node_, name);
  if (found == nullptr) return std::nullopt;
  if (static_cast<size_t>(found->ints_size()) > kMostKnown)
    refuse("its " + std::string(name) + " have too many values");
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

void NodeReader::require(std::string_view name, int64_t only) const {
  const int64_t value = attribute(name, only);
  if (value == only) return;
  refuse(std::string(name) + " " + std::to_string(value) + " cannot be imported; it must be " + std::to_string(only));
}

std::optional<std::vector<int64_t>> NodeReader::input_or_list(size_t i, std::string_view name) {
  if (has(i)) return ints(i);
  return list(name);
}

int NodeReader::axis(int64_t given, size_t rank) const {
  const auto count = static_cast<int64_t>(rank);
  const int64_t positive = given < 0 ? given + count : given;
  if (positive < 0 || positive >= count) {
    refuse("axis " + std::to_string(given) + " is out of range for " + std::to_string(count) + " dimensions");
  }
  return static_cast<int>(positive);
}

void NodeReader::result(Value value) {
  if (node_.output_size() > 0) builder_.set(node_.output(0), value);
}

void NodeReader::result(Known known) {
  if (known.ints.size() > kMostKnown) refuse("it has more integers than any shape");
  if (node_.output_size() > 0) builder_.set(node_.output(0), std::move(known));
}

void NodeReader::refuse(const std::string& why) const { builder_.file().refuse(title(node_) + ": " + why); }

}  // namespace lockstep::interchange
