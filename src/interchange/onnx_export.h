// A model with its parameters as the bytes of an ONNX file: the inference graph, node by node through one table
// (onnx_export_ops.cpp), the parameters it needs as initializers, everything else as Constant nodes. The input is
// `images`. A classifier has the outputs `scores` (logits) and `probabilities`, other models `output`. Free functions
// without state; any thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::interchange {

/// Operator set of exported nodes.
constexpr int64_t kExportOpset = 17;

struct OnnxExport {
  std::string bytes;
  std::string input;                 ///< "images [batch, 1, 28, 28]"
  std::vector<std::string> outputs;  ///< "scores [batch, 10]"
  size_t nodes = 0;
  size_t parameters = 0;  ///< elements; without parameters that inference does not need
};

/// Exports the model. A `request.batch` of 0 leaves the batch open; `request.training` is ignored. `parameters` are all
/// of the model's, in its order. `metadata` is copied into the file. Throws UsageError that names an op which cannot be
/// exported.
OnnxExport export_onnx(const nn::ModelDef& model, const nn::BuildRequest& request, std::span<const float> parameters,
                       const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace lockstep::interchange
