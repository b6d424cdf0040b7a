// Writes event files of every kind, and their content as JSON, for tensorboard_test.py: write_events FOLDER
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "observe/tensorboard/summary_writer.h"
#include "picture/picture_grid.h"

namespace {

using namespace lockstep;
using observe::SummaryWriter;
using Json = nlohmann::ordered_json;

std::vector<float> normal(size_t count, float deviation, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0, deviation);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return distribution(generator); });
  return values;
}

/// Writes scalars as a run would; adds the values that a reader must find to `expected`.
void write_scalars(SummaryWriter& writer, uint64_t first, uint64_t last, double offset, Json& expected) {
  for (uint64_t step = first; step <= last; ++step) {
    for (const char* tag : {"train/loss", "train/accuracy", "eval/accuracy", "monitor/cpu_percent"}) {
      const double value = offset + 1.0 / static_cast<double>(step + std::string(tag).size());
      writer.scalar(tag, step, value);
      expected["scalars"][tag].push_back({step, static_cast<float>(value)});
    }
  }
}

void write_histograms(SummaryWriter& writer, Json& expected) {
  for (uint64_t step : {10, 20}) {
    for (const char* tag : {"weights/conv1/weights", "gradients/conv1/weights"}) {
      const std::vector<float> values = normal(3000, 0.01F * static_cast<float>(step), static_cast<uint32_t>(step));
      writer.histogram(tag, step, values);
      expected["histograms"][tag].push_back({step, values});
    }
  }
}

void write_image(SummaryWriter& writer, const std::string& tag, int channels, Json& expected) {
  picture::PictureGrid grid({channels, 4, 6}, {.gap = 1, .factor = 2});
  const std::vector<float> image(static_cast<size_t>(channels) * 24, 0.5F);
  grid.add(image.data());
  const picture::Bitmap bitmap = grid.picture();
  const std::vector<uint8_t> png = picture::encode_png(bitmap);
  writer.image(tag, 20, png, bitmap.height, bitmap.width, channels);
  expected["images"][tag] = {{"step", 20}, {"height", bitmap.height}, {"width", bitmap.width}, {"png", png}};
}

void write_graph(SummaryWriter& writer, Json& expected) {
  const nn::ModelDef& lenet = nn::find_model("lenet");
  graph::Graph graph;
  ops::gradients(nn::build(graph, lenet, {64, true, lenet.image, 10, nn::resolve_options(lenet, {})}).loss);
  writer.graph(graph, {"/job:worker/task:0/device:CPU:0",
                       [](size_t parameter) { return "/job:ps/task:" + std::to_string(parameter % 2); }});
  expected["graph"]["nodes"] = graph.nodes().size();
  for (const graph::ParameterInfo& parameter : graph.parameters()) {
    expected["graph"]["parameters"][parameter.name] = parameter.shape.dims();
  }
}

observe::HParams hparams_of(const std::string& name, double rate, bool exact) {
  return {{{"lr", rate}, {"model", std::string("lenet")}, {"exact-conv", exact}, {"batch", 64.0}},
          {"eval/accuracy", "train/loss"},
          name};
}

Json write_first_run(const std::string& folder) {
  Json expected;
  const auto warn = [](const std::string& text) { throw std::runtime_error(text); };
  {
    SummaryWriter writer(folder, warn);
    writer.go_on_from(0);
    writer.hparams(hparams_of("lenet-1", 0.001, false));
    write_graph(writer, expected);
    writer.text("config", 0, "| setting | value |\n|---|---|\n| lr | **0.001** |\n");
    write_scalars(writer, 1, 20, 0, expected);
    writer.checkpoint(20, folder + "/checkpoints/step-20.ckpt");
    Json lost;
    write_scalars(writer, 21, 25, 5, lost);  // a kill came before the next checkpoint
  }
  SummaryWriter writer(folder, warn);  // resumed
  writer.go_on_from(20);
  writer.hparams(hparams_of("lenet-1", 0.001, false));
  write_scalars(writer, 21, 23, 0, expected);
  write_histograms(writer, expected);
  write_image(writer, "samples", 3, expected);
  write_image(writer, "pictures/reconstruction", 1, expected);
  writer.ended(true);
  return expected;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const std::string folder = argv[1];
    Json expected;
    expected["lenet-1"] = write_first_run(folder + "/lenet-1");
    {
      SummaryWriter writer(folder + "/lenet-1/worker-1", {});
      write_scalars(writer, 1, 5, 1, expected["lenet-1/worker-1"]);
    }
    SummaryWriter writer(folder + "/lenet-2", {});
    writer.hparams(hparams_of("lenet-2", 0.01, true));
    write_scalars(writer, 1, 10, 2, expected["lenet-2"]);
    writer.ended(false);
    std::ofstream(folder + "/expected.json") << expected.dump();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
