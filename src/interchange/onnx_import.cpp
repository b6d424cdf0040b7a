#include "interchange/onnx_import.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <memory>

#include "interchange/onnx_reader.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

/// Returns the image shape of an input with these sizes (without the batch). Features become one square channel if
/// possible.
Shape image_of(const std::vector<int64_t>& dims) {
  if (dims.size() == 3) return {dims[0], dims[1], dims[2]};
  if (dims.size() == 2) return {1, dims[0], dims[1]};
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(dims[0]))));
  return side * side == dims[0] ? Shape{1, side, side} : Shape{1, 1, dims[0]};
}

nn::ModelGraph build(const OnnxFile& file, graph::Graph& graph, const nn::BuildRequest& request, bool values) {
  const Shape image = image_of(file.input_dims);
  const bool features = file.input_dims.size() == 1;
  const bool fits = features ? request.image.elements() == image.elements() : request.image == image;
  if (!fits) throw ShapeError("model file '" + file.file + "' takes images " + image.str());
  const nn::Value images = nn::image_input(graph, request);
  std::vector<int64_t> dims{request.batch};
  dims.insert(dims.end(), file.input_dims.begin(), file.input_dims.end());
  const nn::Value scores = OnnxBuilder(file, graph, request, values).build(ops::reshape(images, Shape(dims)));
  if (scores.shape().rank() == 0 || scores.shape()[0] != request.batch) {
    throw ShapeError("model file '" + file.file + "': its output '" + printable(file.scores) + "' " +
                     scores.shape().str() + " must begin with the batch (" + std::to_string(request.batch) + ")");
  }
  return nn::classifier(images, ops::flatten(scores));
}

/// Builds the graph with a batch unlike any other size in it; returns the number of classes.
int64_t try_out(const OnnxFile& file) {
  constexpr int64_t kBatch = 3;
  const nn::BuildRequest request{.batch = kBatch, .training = true, .image = image_of(file.input_dims), .options = {}};
  graph::Graph graph;
  try {
    return build(file, graph, request, false).scores.shape()[1];
  } catch (const ShapeError& error) {
    throw DataError(error.what());
  }
}

/// Returns the file's name without folder and ending, in the characters that run names allow.
std::string run_name_from(const std::string& file) {
  constexpr size_t kLongest = 64;
  std::string name = std::filesystem::path(file).stem().string().substr(0, kLongest);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  }
  const bool fine = !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) != 0;
  return fine ? name : "model";
}

std::string metadata(const onnx::ModelProto& model, const std::string& key) {
  for (const auto& entry : model.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

/// Returns a sentence if the model may have lost its dropout, without which training it differs.
std::string about_dropout(const onnx::ModelProto& model) {
  const auto& nodes = model.graph().node();
  const auto drops = [](const onnx::NodeProto& node) { return node.op_type() == "Dropout"; };
  if (std::any_of(nodes.begin(), nodes.end(), drops)) return "";
  if (!metadata(model, kLeftOutKey).empty()) return "; its dropout was left out, as it was exported for inference";
  if (model.producer_name() == "lockstep") return "";
  return "; it has no dropout, which exports for inference leave out (PyTorch's eval())";
}

}  // namespace

std::map<std::string, std::string> export_facts(const std::string& bytes, const std::string& file) {
  const auto source = read_onnx(bytes, file);
  std::map<std::string, std::string> facts;
  if (source->model.producer_name() != "lockstep") return facts;
  for (const auto& entry : source->model.metadata_props()) facts[entry.key()] = printable(entry.value());
  return facts;
}

nn::ModelDef parse_onnx_model(const std::string& bytes, const std::string& file) {
  const auto source = read_onnx(bytes, file);
  nn::ModelDef model;
  model.name = run_name_from(file);
  const std::string& producer = source->model.producer_name();
  model.description =
      "an ONNX file" + (producer.empty() ? "" : " made by " + printable(producer)) + about_dropout(source->model);
  model.image = image_of(source->input_dims);
  model.defaults = {.optimizer = "adam", .learning_rate = 1e-3F};
  model.file = file;
  model.classes = try_out(*source);
  model.build = [source](graph::Graph& graph, const nn::BuildRequest& request) {
    return build(*source, graph, request, true);
  };
  return model;
}

}  // namespace lockstep::interchange
