// An ONNX file, parsed and checked as far as possible without a graph: tensors have the size they claim, there is one
// input, and every name is made once. Constant once read; private to this room.
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

/// A tensor whose elements are known while a graph is built: integers, or one float for all elements.
struct Known {
  std::vector<int64_t> dims;
  std::vector<int64_t> ints;
  float value = 0;
  bool is_float = false;
};
/// Limit of known integers; no shape or list of axes has as many.
constexpr size_t kMostKnown = 4096;
/// Most elements of a tensor of an imported graph.
constexpr int64_t kMostElements = int64_t{1} << 36;

/// Key of our files' metadata that is set if the exported model has dropout in training.
constexpr const char* kLeftOutKey = "left_out";

struct OnnxFile {
  std::string file;  ///< for errors
  onnx::ModelProto model;
  int64_t opset = 0;
  std::map<std::string, const onnx::TensorProto*> initializers;
  std::set<std::string> made;       ///< every name that a node makes
  std::string input;                ///< the one input that is not an initializer
  std::vector<int64_t> input_dims;  ///< without the batch
  int64_t batch = 0;                ///< fixed batch of the input; 0: open
  std::string scores;               ///< name of the first output before softmax
  std::set<int> needed;             ///< nodes that the scores depend on

  /// Throws DataError with the file's name.
  [[noreturn]] void refuse(const std::string& why) const;
};

/// Reads and checks the file; throws DataError. Shared, since the result points into itself.
std::shared_ptr<const OnnxFile> read_onnx(const std::string& bytes, const std::string& file);

/// Returns a name from a file in a form that fits one line.
std::string printable(std::string_view name);
/// Returns "[3, 4]".
std::string dims_text(std::span<const int64_t> dims);
/// Returns the product; -1 if it is negative or beyond kMostElements.
int64_t checked_elements(std::span<const int64_t> dims);
/// Returns "node 'conv1' (Conv)".
std::string title(const onnx::NodeProto& node);
const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);

/// Returns the elements of a float32 tensor that read_onnx has checked.
std::vector<float> float_values(const onnx::TensorProto& tensor);
/// Reads a small tensor of integers, or a float tensor of equal elements. Returns false for any other tensor and sets
/// `why_not` to the reason.
bool to_known(const onnx::TensorProto& tensor, Known& known, std::string& why_not);
/// Returns the fault in a tensor's sizes and bytes; empty if there is none.
std::string tensor_fault(const onnx::TensorProto& tensor);

}  // namespace lockstep::interchange
