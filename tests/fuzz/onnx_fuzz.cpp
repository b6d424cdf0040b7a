// The reader of ONNX files must answer any bytes with a model or a DataError. An accepted model must build, gradients
// included, for other batches, in training and outside, or be refused with an error. A model that builds can be
// exported, or the export is refused with an error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interchange/onnx_export.h"
#include "interchange/onnx_import.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace {

constexpr size_t kMostNodes = 5000;

void build(const lockstep::nn::ModelDef& model, int64_t batch, bool training) {
  lockstep::graph::Graph graph;
  try {
    const lockstep::nn::BuildRequest request{batch, training, model.image, model.classes, {}};
    const auto built = lockstep::nn::build(graph, model, request);
    if (graph.nodes().size() > kMostNodes) return;
    if (training) (void)lockstep::ops::gradients(built.loss);
    const std::vector<float> parameters(graph.parameter_count());
    if (!training) (void)lockstep::interchange::export_onnx(model, request, parameters);
  } catch (const lockstep::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    const lockstep::nn::ModelDef model = lockstep::interchange::parse_onnx_model(bytes, "fuzz.onnx");
    build(model, 1, true);
    build(model, 2, false);
  } catch (const lockstep::DataError&) {
  }
  return 0;
}
