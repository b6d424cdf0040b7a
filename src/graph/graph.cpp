#include "lockstep/graph.h"

#include <cmath>

#include "lockstep/error.h"

namespace lockstep::graph {

std::string Layout::str() const {
  switch (kind) {
    case Kind::plain:
      return "plain";
    case Kind::batch_blocked:
      return "batch/" + std::to_string(block);
    case Kind::channel_blocked:
      return "channel/" + std::to_string(block);
  }
  return "?";
}

int64_t stored_elements(const Shape& shape, const Layout& layout) {
  if (layout.plain()) return shape.elements();
  const int axis = layout.kind == Layout::Kind::batch_blocked ? 0 : 1;
  const int64_t blocks = (shape[axis] + layout.block - 1) / layout.block;
  return shape.with(axis, blocks * layout.block).elements();
}

Initializer Initializer::xavier_uniform(int64_t fan_in, int64_t fan_out) {
  return uniform(std::sqrt(6.0F / static_cast<float>(fan_in + fan_out)));
}

const TensorType& Value::type() const { return graph_->output(id_).type; }
const std::string& Value::name() const { return graph_->node(id_).name; }

Value Graph::add(Op op, std::string_view name, Attrs attrs, std::vector<ValueId> inputs, std::vector<Output> outputs) {
  nodes_.push_back(Node{op, unique_name(name), attrs, std::move(inputs), std::move(outputs), backward_});
  return {this, {static_cast<int32_t>(nodes_.size()) - 1, 0}};
}

Value Graph::input(std::string_view name, TensorType type) {
  return add(Op::input, name, NoAttrs{}, {}, {Output{type, {}}});
}

Value Graph::parameter(std::string_view name, const Shape& shape, Initializer initializer) {
  const int index = static_cast<int>(parameters_.size());
  const Value value = add(Op::parameter, name, ParameterAttrs{index}, {}, {Output{{DType::f32, shape}, {}}});
  if (initializer.kind == Initializer::Kind::list &&
      initializer.values.size() != static_cast<size_t>(shape.elements())) {
    throw ShapeError("parameter '" + value.name() + "' of shape " + shape.str() + " starts from a list of " +
                     std::to_string(initializer.values.size()) + " values");
  }
  parameters_.push_back({value.name(), shape, parameter_count(), std::move(initializer)});
  parameter_values_.push_back(value.id());
  return value;
}

Value Graph::parameter_value(int index) { return {this, parameter_values_[static_cast<size_t>(index)]}; }

size_t Graph::parameter_count() const {
  return parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().count();
}

void Graph::push_scope(std::string_view name) {
  const std::string parent = scopes_.empty() ? "" : scopes_.back() + "/";
  scopes_.push_back(parent + std::string(name));
}

void Graph::pop_scope() { scopes_.pop_back(); }

Graph Graph::shell() const {
  Graph empty;
  empty.parameters_ = parameters_;
  empty.parameter_values_.resize(parameters_.size());
  empty.next_stream_ = next_stream_;
  return empty;
}

int32_t Graph::copy(const Node& node, std::vector<ValueId> inputs) {
  const auto index = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(node);
  nodes_.back().inputs = std::move(inputs);
  if (node.op == Op::parameter) {
    parameter_values_[static_cast<size_t>(node.as<ParameterAttrs>().index)] = {index, 0};
  }
  return index;
}

std::string Graph::unique_name(std::string_view name) {
  std::string full = (scopes_.empty() ? "" : scopes_.back() + "/") + std::string(name);
  auto [use, fresh] = name_uses_.try_emplace(full, 0);
  if (fresh) return full;
  std::string numbered;
  do {
    numbered = full + "_" + std::to_string(++use->second);
  } while (name_uses_.contains(numbered));
  name_uses_.emplace(numbered, 0);
  return numbered;
}

}  // namespace lockstep::graph
