// Conversions of ONNX operators to ours. The table at the end has one line per operator that can be imported; operators
// that compute with shapes are in onnx_fold.cpp.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "interchange/onnx_reader.h"
#include "interchange/onnx_window.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using graph::Value;
using Ints = std::vector<int64_t>;

template <Value (*kOp)(Value)>
void unary(NodeReader& r) {
  r.result(kOp(r.value(0)));
}

/// Returns input i if it is one known value that leaves the other operand's shape unchanged.
std::optional<float> scalar(NodeReader& r, size_t i, const Value& other) {
  const Known* known = r.known(i);
  if (known == nullptr || !known->is_float || checked_elements(known->dims) != 1) return std::nullopt;
  if (static_cast<int>(known->dims.size()) > other.shape().rank()) return std::nullopt;
  return known->value;
}

/// Returns a tensor and one known value, in either order.
std::optional<std::pair<Value, float>> with_scalar(NodeReader& r) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (r.known(1 - i) == nullptr) continue;
    const Value x = r.value(i);
    if (const auto value = scalar(r, 1 - i, x)) return std::pair{x, *value};
  }
  return std::nullopt;
}

bool is_bias(const Value& bias, const Value& x) {
  return bias.shape().rank() == 1 && x.shape().rank() == 2 && bias.shape()[0] == x.shape()[1];
}

Value sum(const Value& a, const Value& b) {
  if (is_bias(b, a)) return ops::bias_add(a, b);
  return is_bias(a, b) ? ops::bias_add(b, a) : ops::add(a, b);
}

void add(NodeReader& r) {
  if (const auto found = with_scalar(r)) return r.result(ops::add_scalar(found->first, found->second));
  r.result(sum(r.value(0), r.value(1)));
}

void sub(NodeReader& r) {
  const Value a = r.value(0);
  if (const auto c = scalar(r, 1, a)) return r.result(ops::add_scalar(a, -*c));
  r.result(ops::sub(a, r.value(1)));
}

void mul(NodeReader& r) {
  if (const auto found = with_scalar(r)) return r.result(ops::scale(found->first, found->second));
  const Value a = r.value(0);
  r.result(r.inputs() == 2 && r.node().input(0) == r.node().input(1) ? ops::square(a) : ops::mul(a, r.value(1)));
}

void div(NodeReader& r) {
  const Value a = r.value(0);
  const auto c = scalar(r, 1, a);
  r.result(c && *c != 0 ? ops::scale(a, 1.0F / *c) : ops::div(a, r.value(1)));
}

template <Value (*kOp)(Value, Value)>
void fold_left(NodeReader& r) {
  Value result = r.value(0);
  for (size_t i = 1; i < r.inputs(); ++i) result = kOp(result, r.value(i));
  r.result(result);
}

void power(NodeReader& r) {
  const Value x = r.value(0);
  const auto exponent = scalar(r, 1, x);
  if (exponent == 2.0F) return r.result(ops::square(x));
  if (exponent == 0.5F) return r.result(ops::sqrt(x));
  if (exponent == 1.0F) return r.result(x);
  r.refuse("only the constant exponents 2, 1 and 0.5 can be imported");
}

Value scaled(const Value& x, float factor) { return factor == 1.0F ? x : ops::scale(x, factor); }

void gemm(NodeReader& r) {
  const bool trans_a = r.attribute("transA", int64_t{0}) != 0;
  const bool trans_b = r.attribute("transB", int64_t{0}) != 0;
  const Value product = scaled(ops::matmul(r.value(0), r.value(1), trans_a, trans_b), r.attribute("alpha", 1.0F));
  if (!r.has(2)) return r.result(product);
  const Value c = scaled(r.value(2), r.attribute("beta", 1.0F));
  const Value y = sum(product, c);
  if (y.shape() != product.shape()) r.refuse("C " + c.shape().str() + " does not fit " + product.shape().str());
  r.result(y);
}

/// Multiplies matrices, or a stack of them with one matrix on the right.
void matmul(NodeReader& r) {
  const Value a = r.value(0);
  const Value b = r.value(1);
  const Shape& shape = a.shape();
  if (b.shape().rank() != 2 || shape.rank() < 2) {
    r.refuse(shape.str() + " times " + b.shape().str() + " cannot be imported; the second must be a matrix");
  }
  if (shape.rank() == 2) return r.result(ops::matmul(a, b));
  const int last = shape.rank() - 1;
  const Shape result = shape.with(last, b.shape()[1]);
  if (checked_elements(result.dims()) < 0) r.refuse("has invalid sizes " + result.str());
  const Value rows = ops::reshape(a, Shape{shape.elements(0, last), shape[last]});
  r.result(ops::reshape(ops::matmul(rows, b), result));
}

void softmax(NodeReader& r) {
  const Value x = r.value(0);
  const int64_t otherwise = r.builder().file().opset < 13 ? 1 : -1;
  const auto rank = static_cast<size_t>(x.shape().rank());
  if (rank != 2 || r.axis(r.attribute("axis", otherwise), rank) != 1) {
    r.refuse("inside a model, only the softmax over the last axis of a matrix can be imported, not of " +
             x.shape().str());
  }
  const Value y = ops::softmax(x);
  r.result(r.node().op_type() == "LogSoftmax" ? ops::log(y) : y);
}

template <Value (*kOp)(Value, std::span<const int>, bool)>
void reduce(NodeReader& r) {
  const Value x = r.value(0);
  std::vector<int> axes;
  for (const int64_t axis : r.input_or_list(1, "axes").value_or(Ints{})) {
    axes.push_back(r.axis(axis, static_cast<size_t>(x.shape().rank())));
  }
  if (axes.empty()) r.require("noop_with_empty_axes", 0);
  r.result(kOp(x, axes, r.attribute("keepdims", int64_t{1}) != 0));
}

void dropout(NodeReader& r) {
  const Value x = r.value(0);
  const Known* given = r.known(1);
  if (r.has(1) && (given == nullptr || !given->is_float)) r.refuse("its ratio must be a constant");
  const float rate = given != nullptr ? given->value : r.attribute("ratio", 0.5F);
  if (!(rate >= 0 && rate < 1)) r.refuse("its ratio must be at least 0 and below 1");
  r.result(r.builder().request().training && rate > 0 ? ops::dropout(x, rate) : x);
}

void transpose(NodeReader& r) {
  const Value x = r.value(0);
  Ints order = r.list("perm").value_or(Ints{});
  if (order.empty()) {
    for (int axis = x.shape().rank(); axis-- > 0;) order.push_back(axis);
  }
  r.result(ops::transpose(x, order));
}

void concat(NodeReader& r) {
  std::vector<Value> parts;
  for (size_t i = 0; i < r.inputs(); ++i) parts.push_back(r.value(i));
  if (parts.empty()) r.refuse("it has no inputs");
  r.result(ops::concat(parts, r.axis(r.attribute("axis", int64_t{0}), static_cast<size_t>(parts[0].shape().rank()))));
}

Ints counted(size_t count) {
  Ints all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

void slice(NodeReader& r) {
  Value x = r.value(0);
  const auto starts = r.input_or_list(1, "starts");
  const auto ends = r.input_or_list(2, "ends");
  if (!starts || !ends || starts->size() != ends->size()) r.refuse("its starts and ends do not fit each other");
  const Ints axes = r.input_or_list(3, "axes").value_or(counted(starts->size()));
  if (axes.size() != starts->size()) r.refuse("its axes do not fit its starts");
  if (r.has(4) && r.ints(4) != Ints(axes.size(), 1)) r.refuse("steps other than 1 cannot be imported");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = r.axis(axes[i], static_cast<size_t>(x.shape().rank()));
    const int64_t size = x.shape()[axis];
    const auto clamped = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
    };
    const int64_t from = clamped((*starts)[i]);
    x = ops::slice(x, axis, from, std::max<int64_t>(clamped((*ends)[i]) - from, 0));
  }
  r.result(x);
}

void gather(NodeReader& r) {
  const Value x = r.value(0);
  const int axis = r.axis(r.attribute("axis", int64_t{0}), static_cast<size_t>(x.shape().rank()));
  const Ints& index = r.ints(1);
  if (index.size() != 1 || !r.known(1)->dims.empty()) r.refuse("only a single constant index can be imported");
  const int64_t size = x.shape()[axis];
  const int64_t at = index[0] < 0 ? index[0] + size : index[0];
  if (at < 0 || at >= size) r.refuse("index " + std::to_string(index[0]) + " is outside " + x.shape().str());
  Ints dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.erase(dims.begin() + axis);
  r.result(ops::reshape(ops::slice(x, axis, at, 1), Shape(dims)));
}

/// Replaces the fixed batch in a file's sizes for tensors of the batch: the file's first size stands for the batch.
void open_batch(NodeReader& r, const Value& x, Ints& dims) {
  const int64_t fixed = r.builder().file().batch;
  const int64_t batch = r.builder().request().batch;
  const bool of_batch = x.shape().rank() > 0 && x.shape()[0] == batch;
  if (fixed > 0 && of_batch && !dims.empty() && dims[0] == fixed) dims[0] = batch;
}

void reshape(NodeReader& r) {
  const Value x = r.value(0);
  Ints dims = r.ints(1);
  const bool zero_copies = r.attribute("allowzero", int64_t{0}) == 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && zero_copies && static_cast<int>(i) < x.shape().rank()) dims[i] = x.shape()[static_cast<int>(i)];
    if (dims[i] < -1) r.refuse("has invalid sizes " + dims_text(dims));
  }
  open_batch(r, x, dims);
  Ints sizes = dims;
  std::replace(sizes.begin(), sizes.end(), int64_t{-1}, int64_t{1});
  if (checked_elements(sizes) < 0) r.refuse("has invalid sizes " + dims_text(dims));
  r.result(ops::reshape(x, dims));
}

void reshape_to(NodeReader& r, const Value& x, const Ints& dims) { r.result(ops::reshape(x, Shape(dims))); }

Ints dims_of(const Value& x) { return {x.shape().dims().begin(), x.shape().dims().end()}; }

void unsqueeze(NodeReader& r) { reshape_to(r, r.value(0), unsqueezed(r, dims_of(r.value(0)))); }
void squeeze(NodeReader& r) { reshape_to(r, r.value(0), squeezed(r, dims_of(r.value(0)))); }

void flatten(NodeReader& r) {
  const Value x = r.value(0);
  const int rank = x.shape().rank();
  const int64_t given = r.attribute("axis", int64_t{1});
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) r.refuse("axis " + std::to_string(given) + " is out of range for " + x.shape().str());
  const auto at = static_cast<int>(axis);
  r.result(ops::reshape(x, Shape{x.shape().elements(0, at), x.shape().elements(at, rank)}));
}

void expand(NodeReader& r) {
  const Value x = r.value(0);
  Ints dims = r.ints(1);
  open_batch(r, x, dims);
  if (checked_elements(dims) < 0) r.refuse("has invalid sizes " + dims_text(dims));
  Shape result;
  if (!broadcast(x.shape(), Shape(dims), result)) r.refuse(x.shape().str() + " does not fit " + dims_text(dims));
  if (checked_elements(result.dims()) < 0) r.refuse("has invalid sizes " + result.str());
  r.result(ops::broadcast_to(x, result));
}

void cast(NodeReader& r) {
  r.require("to", onnx::TensorProto::FLOAT);
  r.result(r.value(0));
}

void identity(NodeReader& r) { r.result(r.value(0)); }

struct Imported {
  std::string_view op;
  NodeImporter importer;
};
constexpr std::array kImported{
    Imported{"Abs", unary<ops::abs>},
    Imported{"Add", add},
    Imported{"AffineGrid", import_affine_grid},
    Imported{"AveragePool", import_average_pool},
    Imported{"Cast", cast},
    Imported{"Concat", concat},
    Imported{"Conv", import_conv},
    Imported{"Div", div},
    Imported{"Dropout", dropout},
    Imported{"Exp", unary<ops::exp>},
    Imported{"Expand", expand},
    Imported{"Flatten", flatten},
    Imported{"Gather", gather},
    Imported{"Gemm", gemm},
    Imported{"GlobalAveragePool", import_global_average_pool},
    Imported{"GlobalMaxPool", import_global_max_pool},
    Imported{"GridSample", import_grid_sample},
    Imported{"Identity", identity},
    Imported{"LRN", import_lrn},
    Imported{"Log", unary<ops::log>},
    Imported{"LogSoftmax", softmax},
    Imported{"MatMul", matmul},
    Imported{"Max", fold_left<ops::maximum>},
    Imported{"MaxPool", import_max_pool},
    Imported{"Min", fold_left<ops::minimum>},
    Imported{"Mul", mul},
    Imported{"Neg", unary<ops::neg>},
    Imported{"Pow", power},
    Imported{"ReduceMax", reduce<ops::reduce_max>},
    Imported{"ReduceMean", reduce<ops::reduce_mean>},
    Imported{"ReduceSum", reduce<ops::reduce_sum>},
    Imported{"Relu", unary<ops::relu>},
    Imported{"Reshape", reshape},
    Imported{"Sigmoid", unary<ops::sigmoid>},
    Imported{"Slice", slice},
    Imported{"Softmax", softmax},
    Imported{"Softplus", unary<ops::softplus>},
    Imported{"Sqrt", unary<ops::sqrt>},
    Imported{"Squeeze", squeeze},
    Imported{"Sub", sub},
    Imported{"Sum", fold_left<ops::add>},
    Imported{"Tanh", unary<ops::tanh>},
    Imported{"Transpose", transpose},
    Imported{"Unsqueeze", unsqueeze},
};

}  // namespace

NodeImporter find_importer(std::string_view op) {
  const auto found =
      std::find_if(kImported.begin(), kImported.end(), [&](const Imported& entry) { return entry.op == op; });
  return found == kImported.end() ? nullptr : found->importer;
}

std::string importable_ops() {
  std::string all;
  for (const Imported& entry : kImported) all.append(all.empty() ? "" : ", ").append(entry.op);
  return all;
}

}  // namespace lockstep::interchange
