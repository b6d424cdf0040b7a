#include "ops/rules.h"

#include "ops/op_table.h"

namespace lockstep::ops {

void reject(std::string_view op, const std::string& message) { throw ShapeError(std::string(op) + ": " + message); }

void require_dtype(std::string_view op, std::string_view argument, Value value, DType dtype) {
  if (!value.valid()) reject(op, std::string(argument) + " is not a value of a graph");
  if (value.dtype() == dtype) return;
  reject(op, std::string(argument) + " '" + value.name() + "' " + value.shape().str() + " is " +
                 std::string(lockstep::name(value.dtype())) + ", must be " + std::string(lockstep::name(dtype)));
}

void require_rank(std::string_view op, std::string_view argument, Value value, int rank) {
  if (value.shape().rank() == rank) return;
  reject(op, std::string(argument) + " '" + value.name() + "' has shape " + value.shape().str() + " of rank " +
                 std::to_string(value.shape().rank()) + ", must have rank " + std::to_string(rank));
}

void require_same_graph(std::string_view op, Value a, Value b) {
  if (&a.graph() != &b.graph()) reject(op, "'" + a.name() + "' and '" + b.name() + "' belong to different graphs");
}

void require_same_shape(std::string_view op, std::string_view a_name, Value a, std::string_view b_name, Value b) {
  if (a.shape() == b.shape()) return;
  reject(op, std::string(b_name) + " " + b.shape().str() + " must have the shape of " + std::string(a_name) + " " +
                 a.shape().str());
}

Value add_node(Op op, Attrs attrs, std::vector<Value> inputs, const std::vector<TensorType>& outputs) {
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const Value& input : inputs) {
    require_same_graph(name(op), inputs.front(), input);
    ids.push_back(input.id());
  }
  std::vector<Output> described;
  described.reserve(outputs.size());
  for (const TensorType& type : outputs) described.push_back({type, {}});
  return inputs.front().graph().add(op, name(op), attrs, std::move(ids), std::move(described));
}

}  // namespace lockstep::ops
