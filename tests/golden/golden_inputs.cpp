// golden_inputs CASE DIR: writes the case's inputs for make_golden.py: case.json, parameters.f32 and, per step,
// images-N.f32, labels-N.i32 and random-N-K.f32 (the values of the K-th random op: a dropout's scaled mask, or noise).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden/golden_cases.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "program/program.h"
#include "settings/machine.h"

namespace lockstep::golden {
namespace {

using graph::Op;

template <class T>
void write(const std::filesystem::path& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
  if (!file) throw IoError("cannot write " + path.string());
}

/// The values of all random ops of a model's training graph.
struct RandomValues {
  explicit RandomValues(const Case& golden) {
    const train::ModelSpec spec = spec_of(golden);
    graph::Graph graph;
    nn::build(graph, *spec.model, {golden.batch, true, golden.image, golden.classes, spec.options});
    const auto count = static_cast<int32_t>(graph.nodes().size());
    std::vector<graph::Value> wanted;
    for (int32_t i = 0; i < count; ++i) {
      const graph::Node node = graph.node(i);
      if (node.op == Op::random_normal || node.op == Op::random_uniform) wanted.push_back(graph.value({i, 0}));
      if (node.op == Op::dropout) {
        const graph::Value ones = ops::constant(graph, node.outputs[0].type.shape, 1);
        wanted.push_back(graph.add(Op::dropout, "mask", node.attrs, {ones.id()}, node.outputs));
      }
    }
    if (!wanted.empty()) program.emplace(std::move(graph), wanted, std::vector<graph::Value>{}, *backend);
    outputs = wanted.size();
  }

  std::unique_ptr<backend::Backend> backend = settings::make_backend("cpu", 1);
  std::optional<program::Program> program;
  size_t outputs = 0;
};

void write_case(const Case& golden, const std::filesystem::path& dir) {
  std::filesystem::create_directories(dir);
  const program::ParameterStore store = start_of(golden);
  write<float>(dir / "parameters.f32", store.values());
  RandomValues random(golden);
  std::vector<float> dummy(static_cast<size_t>(golden.batch * golden.image.elements()));
  std::vector<int32_t> dummy_labels(static_cast<size_t>(golden.batch));
  for (uint64_t step = 0; step < kSteps; ++step) {
    const Batch batch = batch_of(golden, step);
    const std::string n = std::to_string(step);
    write<float>(dir / ("images-" + n + ".f32"), batch.images);
    write<int32_t>(dir / ("labels-" + n + ".i32"), batch.labels);
    if (!random.program) continue;
    random.program->bind_parameters(store.values().data());
    random.program->bind_input(0, dummy.data());
    if (train::traits_of(spec_of(golden)).labels) random.program->bind_input(1, dummy_labels.data());
    random.program->run({kSeed, step, 0});
    for (size_t k = 0; k < random.outputs; ++k) {
      const Tensor values = random.program->output(k);
      write<float>(dir / ("random-" + n + "-" + std::to_string(k) + ".f32"), values.as<float>());
    }
  }
  nlohmann::ordered_json json{{"name", golden.name},
                              {"model", golden.model},
                              {"options", spec_of(golden).options},
                              {"batch", golden.batch},
                              {"image", golden.image.dims()},
                              {"classes", golden.classes},
                              {"steps", kSteps},
                              {"random", random.outputs},
                              {"sgd_rate", golden.sgd_rate},
                              {"adam_rate", golden.adam_rate}};
  for (const graph::ParameterInfo& info : store.infos()) {
    json["parameters"].push_back({{"name", info.name}, {"shape", info.shape.dims()}, {"offset", info.offset}});
  }
  std::ofstream(dir / "case.json") << json.dump(2) << "\n";
}

}  // namespace
}  // namespace lockstep::golden

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "list") {
    for (const auto& golden : lockstep::golden::cases()) std::printf("%s\n", golden.name.c_str());
    return 0;
  }
  for (const auto& golden : lockstep::golden::cases()) {
    if (argc == 3 && golden.name == argv[1]) {
      lockstep::golden::write_case(golden, argv[2]);
      return 0;
    }
  }
  std::fprintf(stderr, "usage: golden_inputs list | CASE DIR\n");
  return 2;
}
