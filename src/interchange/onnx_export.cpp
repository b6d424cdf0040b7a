#include "interchange/onnx_export.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "interchange/onnx_file.h"
#include "interchange/onnx_writer.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

constexpr int64_t kIrVersion = 8;
// Two batch sizes without a common factor; see TwoBuilds.
constexpr int64_t kFirstBatch = 2;
constexpr int64_t kSecondBatch = 3;

struct Build {
  graph::Graph graph;
  std::vector<graph::ValueId> outputs;
  graph::ValueId images;
};

Build build(const nn::ModelDef& model, nn::BuildRequest request, int64_t batch) {
  Build result;
  request.batch = batch;
  request.training = false;
  const nn::ModelGraph built = nn::build(result.graph, model, request);
  result.images = built.images.id();
  result.outputs = {built.scores.id()};
  if (built.correct.valid()) result.outputs.push_back(ops::softmax(built.scores).id());
  return result;
}

/// Returns true if the model drops values in training, of which an exported file knows nothing.
bool has_dropout(const nn::ModelDef& model, nn::BuildRequest request) {
  graph::Graph graph;
  request.batch = kFirstBatch;
  request.training = true;
  nn::build(graph, model, request);
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const graph::Node& node) { return node.op == graph::Op::dropout; });
}

void add_metadata(onnx::ModelProto& file, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *file.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

/// Protocol buffers hold at most 2 GB.
void check_file_size(const graph::Graph& graph, std::span<const float> parameters) {
  if (parameters.size() != graph.parameter_count()) {
    throw UsageError("export: the model has " + std::to_string(graph.parameter_count()) + " parameters, not " +
                     std::to_string(parameters.size()));
  }
  constexpr size_t kRoomForNodes = size_t{16} << 20;
  if (parameters.size_bytes() > std::numeric_limits<int32_t>::max() - kRoomForNodes) {
    throw UsageError("export: " + std::to_string(parameters.size()) +
                     " parameters do not fit; an ONNX file holds 2 GB");
  }
}

}  // namespace

OnnxExport export_onnx(const nn::ModelDef& model, const nn::BuildRequest& request, std::span<const float> parameters,
                       const std::vector<std::pair<std::string, std::string>>& metadata) {
  const bool open = request.batch == 0;
  const Build first = build(model, request, open ? kFirstBatch : request.batch);
  std::optional<Build> second;
  if (open) second = build(model, request, kSecondBatch);
  check_file_size(first.graph, parameters);

  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("lockstep");
  file.add_opset_import()->set_version(kExportOpset);
  for (const auto& [key, value] : metadata) add_metadata(file, key, value);
  if (has_dropout(model, request)) add_metadata(file, kLeftOutKey, "dropout");
  file.mutable_graph()->set_name(model.name);
  const TwoBuilds builds{&first.graph, open ? &second->graph : nullptr, kFirstBatch, kSecondBatch};
  OnnxWriter writer(builds, parameters, *file.mutable_graph());
  std::vector<std::string> names{"output"};
  if (first.outputs.size() > 1) names = {"scores", "probabilities"};
  writer.add_input(first.images, "images");
  writer.write(first.outputs, names);

  OnnxExport result;
  result.bytes = file.SerializeAsString();
  result.input = writer.input_name() + " " + to_string(builds.dims(first.images));
  for (size_t i = 0; i < names.size(); ++i) {
    result.outputs.push_back(names[i] + " " + to_string(builds.dims(first.outputs[i])));
  }
  result.nodes = static_cast<size_t>(file.graph().node_size());
  result.parameters = writer.parameters();
  return result;
}

}  // namespace lockstep::interchange
