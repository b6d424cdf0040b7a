// Integers that ONNX files compute from shapes, evaluated while the graph is built. The table at the end has one line
// per op.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "interchange/onnx_reader.h"

namespace lockstep::interchange {
namespace {

using Ints = std::vector<int64_t>;

Known list_of(Ints values) {
  Known known;
  known.dims = {static_cast<int64_t>(values.size())};
  known.ints = std::move(values);
  return known;
}

Known one_float(float value) {
  Known known;
  known.is_float = true;
  known.value = value;
  return known;
}

Ints dims_of(NodeReader& r) {
  if (const Known* known = r.known(0)) return known->dims;
  const auto dims = r.value(0).shape().dims();
  return {dims.begin(), dims.end()};
}

int64_t clamp_index(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}

void shape(NodeReader& r) {
  const Ints dims = dims_of(r);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t from = clamp_index(r.attribute("start", int64_t{0}), rank);
  const int64_t to = std::max(from, clamp_index(r.attribute("end", rank), rank));
  r.result(list_of({dims.begin() + from, dims.begin() + to}));
}

void constant(NodeReader& r) {
  if (const auto* tensor = find_attribute(r.node(), "value")) {
    Known known;
    std::string why_not = tensor_fault(tensor->t());
    if (!why_not.empty() || !to_known(tensor->t(), known, why_not)) r.refuse("it " + why_not);
    r.result(std::move(known));
  } else if (find_attribute(r.node(), "value_float") != nullptr) {
    r.result(one_float(r.attribute("value_float", 0.0F)));
  } else if (find_attribute(r.node(), "value_int") != nullptr) {
    Known known;
    known.ints = {r.attribute("value_int", int64_t{0})};
    r.result(std::move(known));
  } else if (const auto values = r.list("value_ints")) {
    r.result(list_of(*values));
  } else {
    r.refuse("a constant of this kind cannot be imported; numbers can");
  }
}

void constant_of_shape(NodeReader& r) {
  Known known;
  known.is_float = true;
  if (const auto* tensor = find_attribute(r.node(), "value")) {
    std::string why_not = tensor_fault(tensor->t());
    if (!why_not.empty() || !to_known(tensor->t(), known, why_not)) r.refuse("its value " + why_not);
  }
  known.dims = r.ints(0);
  const int64_t elements = checked_elements(known.dims);
  if (elements < 0) r.refuse("has invalid sizes " + dims_text(known.dims));
  if (!known.is_float) {
    if (elements > static_cast<int64_t>(kMostKnown) || known.ints.size() != 1) r.refuse("it has too many integers");
    known.ints.assign(static_cast<size_t>(elements), known.ints.front());
  }
  r.result(std::move(known));
}

void gather(NodeReader& r) {
  const Ints& data = r.ints(0);
  if (r.known(0)->dims.size() != 1) r.refuse("integers of several dimensions cannot be imported");
  r.require("axis", 0);
  Known known;
  known.dims = r.known(1) == nullptr ? Ints{} : r.known(1)->dims;
  const auto size = static_cast<int64_t>(data.size());
  for (const int64_t index : r.ints(1)) {
    if (index < -size || index >= size) {
      r.refuse("index " + std::to_string(index) + " is outside " + std::to_string(size) + " integers");
    }
    known.ints.push_back(data[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  r.result(std::move(known));
}

void concat(NodeReader& r) {
  Ints all;
  for (size_t i = 0; i < r.inputs(); ++i) {
    const Ints& part = r.ints(i);
    if (r.known(i)->dims.size() != 1) r.refuse("integers of several dimensions cannot be imported");
    all.insert(all.end(), part.begin(), part.end());
    if (all.size() > kMostKnown) r.refuse("it has more integers than any shape");
  }
  r.result(list_of(std::move(all)));
}

void slice(NodeReader& r) {
  const Ints& data = r.ints(0);
  const auto starts = r.input_or_list(1, "starts");
  const auto ends = r.input_or_list(2, "ends");
  const bool plain = r.known(0)->dims.size() == 1 && starts && ends && starts->size() == 1 && ends->size() == 1;
  if (!plain) r.refuse("integers can only be sliced along one axis");
  if (r.has(4) && r.ints(4) != Ints{1}) r.refuse("steps other than 1 cannot be imported");
  const auto size = static_cast<int64_t>(data.size());
  const int64_t from = clamp_index(std::max(starts->front(), -size), size);
  const int64_t to = std::max(from, clamp_index(std::max(ends->front(), -size), size));
  r.result(list_of({data.begin() + from, data.begin() + to}));
}

void cast(NodeReader& r) {
  const int64_t to = r.attribute("to", int64_t{0});
  Known known = *r.known(0);
  if (to == onnx::TensorProto::FLOAT && known.ints.size() == 1) {
    known.is_float = true;
    known.value = static_cast<float>(known.ints.front());
    known.ints.clear();
  } else if (to != onnx::TensorProto::INT64 && to != onnx::TensorProto::INT32) {
    r.refuse("a cast of integers to type " + std::to_string(to) + " cannot be imported");
  }
  r.result(std::move(known));
}

void identity(NodeReader& r) { r.result(Known(*r.known(0))); }

void with_dims(NodeReader& r, Ints dims) {
  Known known = *r.known(0);
  known.dims = std::move(dims);
  r.result(std::move(known));
}

void unsqueeze(NodeReader& r) { with_dims(r, unsqueezed(r, r.known(0)->dims)); }
void squeeze(NodeReader& r) { with_dims(r, squeezed(r, r.known(0)->dims)); }

void reshape(NodeReader& r) {
  const auto count = static_cast<int64_t>(r.ints(0).size());
  const Ints& dims = r.ints(1);
  if (dims == Ints{-1} || dims == Ints{count}) {
    with_dims(r, {count});
  } else if (dims.empty() && count == 1) {
    with_dims(r, {});
  } else {
    r.refuse("integers can only be reshaped to a list");
  }
}

/// Computes one element; returns false if the result does not fit an int64.
using Arithmetic = bool (*)(int64_t, int64_t, int64_t*);
bool plus(int64_t a, int64_t b, int64_t* c) { return !__builtin_add_overflow(a, b, c); }
bool minus(int64_t a, int64_t b, int64_t* c) { return !__builtin_sub_overflow(a, b, c); }
bool times(int64_t a, int64_t b, int64_t* c) { return !__builtin_mul_overflow(a, b, c); }
bool over(int64_t a, int64_t b, int64_t* c) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return false;
  *c = a / b;
  return true;
}

template <Arithmetic kCompute>
void arithmetic(NodeReader& r) {
  const Ints& a = r.ints(0);
  const Ints& b = r.ints(1);
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) r.refuse("its integers do not fit each other");
  Known known = a.size() >= b.size() ? *r.known(0) : *r.known(1);
  if (a.empty() || b.empty()) known.ints.clear();
  for (size_t i = 0; i < known.ints.size(); ++i) {
    const bool fine = kCompute(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i], &known.ints[i]);
    if (!fine) r.refuse("its integers overflow or divide by zero");
  }
  r.result(std::move(known));
}

void reduce_prod(NodeReader& r) {
  int64_t product = 1;
  for (const int64_t value : r.ints(0)) {
    if (!times(product, value, &product)) r.refuse("its integers overflow");
  }
  Known known = list_of({product});
  if (r.attribute("keepdims", int64_t{1}) == 0) known.dims.clear();
  r.result(std::move(known));
}

struct Folded {
  std::string_view op;
  NodeImporter importer;
};
constexpr std::array kFolded{
    Folded{"Add", arithmetic<plus>},
    Folded{"Cast", cast},
    Folded{"Concat", concat},
    Folded{"Constant", constant},
    Folded{"ConstantOfShape", constant_of_shape},
    Folded{"Div", arithmetic<over>},
    Folded{"Gather", gather},
    Folded{"Identity", identity},
    Folded{"Mul", arithmetic<times>},
    Folded{"ReduceProd", reduce_prod},
    Folded{"Reshape", reshape},
    Folded{"Shape", shape},
    Folded{"Slice", slice},
    Folded{"Squeeze", squeeze},
    Folded{"Sub", arithmetic<minus>},
    Folded{"Unsqueeze", unsqueeze},
};

/// Returns the axes of a result of `rank` dimensions, each once.
std::set<int> axes_of(NodeReader& r, const Ints& axes, size_t rank) {
  std::set<int> all;
  for (const int64_t axis : axes) {
    if (!all.insert(r.axis(axis, rank)).second) r.refuse("axis " + std::to_string(axis) + " is named twice");
  }
  return all;
}

}  // namespace

std::vector<int64_t> unsqueezed(NodeReader& r, std::vector<int64_t> dims) {
  const auto axes = r.input_or_list(1, "axes");
  if (!axes) r.refuse("it names no axes");
  if (axes->size() > Shape::kMaxRank) r.refuse("it names too many axes");
  for (const int axis : axes_of(r, *axes, dims.size() + axes->size())) dims.insert(dims.begin() + axis, 1);
  return dims;
}

std::vector<int64_t> squeezed(NodeReader& r, const std::vector<int64_t>& dims) {
  const auto axes = r.input_or_list(1, "axes");
  const std::set<int> named = axes_of(r, axes.value_or(Ints{}), dims.size());
  Ints kept;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool gone = axes ? named.contains(static_cast<int>(i)) : dims[i] == 1;
    if (!gone) kept.push_back(dims[i]);
    if (gone && dims[i] != 1) r.refuse("axis " + std::to_string(i) + " of " + dims_text(dims) + " is not of size 1");
  }
  return kept;
}

NodeImporter find_constant_folder(std::string_view op) {
  const auto found = std::find_if(kFolded.begin(), kFolded.end(), [&](const Folded& entry) { return entry.op == op; });
  return found == kFolded.end() ? nullptr : found->importer;
}

}  // namespace lockstep::interchange
