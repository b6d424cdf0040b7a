// An ONNX file, taken apart and checked as far as no graph is needed for it: tensors that are as large as they claim,
// one input, names made once. Constant once read; private to this room.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx.pb.h"

namespace lockstep::interchange {

/// A tensor whose elements are known while a graph is built: integers, or one float everywhere.
struct Known {
  std::vector<int64_t> dims;
  std::vector<int64_t> ints;
  float value = 0;
  bool is_float = false;
};
/// More integers than any shape or list of axes has.
constexpr size_t kMostKnown = 4096;
/// The most elements that a tensor of an imported graph may have.
constexpr int64_t kMostElements = int64_t{1} << 36;

struct OnnxFile {
  std::string file;  ///< for errors
  onnx::ModelProto model;
  int64_t opset = 0;
  std::map<std::string, const onnx::TensorProto*> initializers;
  std::set<std::string> made;       ///< every name that a node gives
  std::string input;                ///< the one that is no initializer
  std::vector<int64_t> input_dims;  ///< without the batch
  int64_t batch = 0;                ///< of the input where it is fixed, else 0
  std::string scores;               ///< the name of the first output without softmax
  std::set<int> needed;             ///< the nodes that the scores depend on

  /// Throws DataError of the file.
  [[noreturn]] void refuse(const std::string& why) const;
};

/// Throws DataError. Shared, since the file points into itself.
std::shared_ptr<const OnnxFile> read_onnx(const std::string& bytes, const std::string& file);

/// A name from a file as it can be shown in one line.
std::string printable(std::string_view name);
/// "[3, 4]".
std::string dims_text(std::span<const int64_t> dims);
/// The product, or -1 where it is negative or beyond kMostElements.
int64_t checked_elements(std::span<const int64_t> dims);
/// "node 'conv1' (Conv)".
std::string title(const onnx::NodeProto& node);
const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);

/// The elements of a float32 tensor that read_onnx has checked.
std::vector<float> float_values(const onnx::TensorProto& tensor);
/// A small tensor of integers, or one float everywhere; `why_not` says why it is neither.
bool to_known(const onnx::TensorProto& tensor, Known& known, std::string& why_not);
/// What is wrong with a tensor's sizes and bytes; empty: nothing.
std::string tensor_fault(const onnx::TensorProto& tensor);

}  // namespace lockstep::interchange
