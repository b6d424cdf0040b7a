// The elements of tensors in ONNX files.
#include <algorithm>
#include <cstring>

#include "interchange/onnx_file.h"

namespace lockstep::interchange {
namespace {

using onnx::TensorProto;

std::string type_name(int type) {
  switch (type) {
    case TensorProto::FLOAT16:
      return "float16";
    case TensorProto::BFLOAT16:
      return "bfloat16";
    case TensorProto::DOUBLE:
      return "float64";
    case TensorProto::STRING:
      return "text";
    default:
      return "of type " + std::to_string(type);
  }
}

/// Returns the bytes of an element in raw_data, or 0 for types that are not supported.
size_t raw_size(int type) {
  switch (type) {
    case TensorProto::FLOAT:
    case TensorProto::INT32:
      return 4;
    case TensorProto::INT64:
    case TensorProto::DOUBLE:
      return 8;
    case TensorProto::BOOL:
      return 1;
    default:
      return 0;
  }
}

int list_size(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return tensor.float_data_size();
    case TensorProto::INT32:
    case TensorProto::BOOL:
      return tensor.int32_data_size();
    case TensorProto::INT64:
      return tensor.int64_data_size();
    case TensorProto::DOUBLE:
      return tensor.double_data_size();
    default:
      return 0;
  }
}

template <class To, class Element, class List>
std::vector<To> values(const TensorProto& tensor, const List& list) {
  if (!tensor.has_raw_data()) return {list.begin(), list.end()};
  std::vector<Element> elements(tensor.raw_data().size() / sizeof(Element));
  std::memcpy(elements.data(), tensor.raw_data().data(), elements.size() * sizeof(Element));
  return {elements.begin(), elements.end()};
}

bool one_value(const std::vector<float>& values, Known& known) {
  if (values.empty()) return false;
  known.is_float = true;
  known.value = values.front();
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == known.value; });
}

}  // namespace

int64_t checked_elements(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (const int64_t size : dims) {
    if (size < 0 || (size > 0 && product > kMostElements / size)) return -1;
    product *= size;
  }
  return product;
}

std::string tensor_fault(const TensorProto& tensor) {
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const int64_t elements = checked_elements(dims);
  if (elements < 0) return "has invalid sizes " + dims_text(dims);
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    return "lies in another file; export the model as one file (torch.onnx.export: external_data=False)";
  }
  const size_t size = raw_size(tensor.data_type());
  if (size == 0) return {};  // refused at its use
  const auto wanted = static_cast<size_t>(elements);
  if (tensor.has_raw_data()) {
    const size_t bytes = tensor.raw_data().size();
    if (bytes == wanted * size) return {};
    return dims_text(dims) + " takes " + std::to_string(wanted * size) + " bytes, the file has " +
           std::to_string(bytes);
  }
  const auto there = static_cast<size_t>(list_size(tensor));
  if (there == wanted) return {};
  return dims_text(dims) + " takes " + std::to_string(wanted) + " elements, the file has " + std::to_string(there);
}

std::vector<float> float_values(const TensorProto& tensor) { return values<float, float>(tensor, tensor.float_data()); }

bool to_known(const TensorProto& tensor, Known& known, std::string& why_not) {
  known = {};
  known.dims.assign(tensor.dims().begin(), tensor.dims().end());
  const auto elements = static_cast<size_t>(checked_elements(known.dims));
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      why_not = "is a constant of several values; only initializers can have several, and they are trained";
      return one_value(float_values(tensor), known);
    case TensorProto::DOUBLE:
      why_not = "is float64; only float32 can be imported: export the model in float32";
      return elements == 1 && one_value(values<float, double>(tensor, tensor.double_data()), known);
    case TensorProto::INT64:
    case TensorProto::INT32:
    case TensorProto::BOOL:
      break;
    default:
      why_not = "is " + type_name(tensor.data_type()) + "; only float32 (and integers for shapes) can be imported";
      return false;
  }
  if (elements > kMostKnown) {
    why_not = "has " + std::to_string(elements) + " integers; shapes and axes have fewer";
    return false;
  }
  if (tensor.data_type() == TensorProto::INT64) {
    known.ints = values<int64_t, int64_t>(tensor, tensor.int64_data());
  } else if (tensor.data_type() == TensorProto::INT32) {
    known.ints = values<int64_t, int32_t>(tensor, tensor.int32_data());
  } else {
    known.ints = values<int64_t, uint8_t>(tensor, tensor.int32_data());
  }
  return true;
}

}  // namespace lockstep::interchange
