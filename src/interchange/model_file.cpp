#include "interchange/model_file.h"

#include "base/file.h"
#include "base/yaml_tree.h"
#include "interchange/onnx_import.h"
#include "interchange/yaml_model.h"
#include "lockstep/error.h"

namespace lockstep::interchange {
namespace {

bool is_yaml(std::string_view name) { return name.ends_with(".yaml") || name.ends_with(".yml"); }
bool is_onnx(std::string_view name) { return name.ends_with(".onnx"); }

}  // namespace

bool is_model_file(std::string_view name) { return is_yaml(name) || is_onnx(name); }

nn::ModelDef load_model(const std::string& path, const std::string& original) {
  if (is_yaml(path)) {
    const std::vector<uint8_t> bytes = base::read_file(path, base::kLargestYaml);
    return parse_yaml_model(std::string(bytes.begin(), bytes.end()), path, original);
  }
  if (is_onnx(path)) {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestOnnx);
    return parse_onnx_model(std::string(bytes.begin(), bytes.end()), original.empty() ? path : original);
  }
  throw UsageError("model file '" + path + "': its name must end in .yaml, .yml or .onnx");
}

}  // namespace lockstep::interchange
