// Exports every zoo model, in each variant that its options name, and computes what it gives for some images, for
// onnxruntime_test.py to compare.
//   onnx_reference FOLDER [MODEL]   without a model: prints the names
// Writes for each variant i: i.onnx, i.images (float32), i.expected (float32), and in variants.json what they are.
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "interchange/model_outputs.h"
#include "interchange/onnx_export.h"

namespace {

using lockstep::interchange::export_onnx;
using lockstep::nn::ModelDef;
using lockstep::testing::ModelRun;
using Options = std::map<std::string, std::string>;

constexpr int64_t kBatch = 3;

/// The default, then each other value of each option.
std::vector<Options> variants(const ModelDef& model) {
  std::vector<Options> all{{}};
  for (const auto& option : model.options) {
    for (const std::string& value : option.allowed) {
      if (value != option.default_value) all.push_back({{option.name, value}});
    }
  }
  return all;
}

void write_floats(const std::string& path, const std::vector<float>& values) {
  lockstep::base::write_whole_file(
      path, std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

std::string text(const Options& options) {
  std::string all;
  for (const auto& [name, value] : options) all += " " + name + "=" + value;
  return all;
}

void write_model(const std::string& folder, const ModelDef& model) {
  nlohmann::json list = nlohmann::json::array();
  for (const Options& options : variants(model)) {
    for (const int64_t batch : {int64_t{0}, kBatch}) {
      const ModelRun run(model, {.batch = kBatch, .training = false, .image = model.image, .options = options});
      auto request = run.request();
      request.batch = batch;
      const auto file = export_onnx(model, request, run.parameters());
      const std::string name = folder + "/" + std::to_string(list.size());
      lockstep::base::write_whole_file(name + ".onnx", file.bytes);
      write_floats(name + ".images", run.images());
      write_floats(name + ".expected", run.scores());
      const auto dims = model.image.dims();
      list.push_back({{"name", model.name + text(options)},
                      {"batch", batch},
                      {"images", kBatch},
                      {"image", std::vector<int64_t>(dims.begin(), dims.end())}});
    }
  }
  std::ofstream(folder + "/variants.json") << list.dump(1) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (const ModelDef& model : lockstep::nn::zoo()) {
      if (argc < 3) std::printf("%s\n", model.name.c_str());
      if (argc == 3 && model.name == argv[2]) write_model(argv[1], model);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx_reference: %s\n", error.what());
    return 1;
  }
  return 0;
}
