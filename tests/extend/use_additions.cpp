// Uses the additions that no command reaches alone: trains a model with the new op on the new data set with the new
// optimizer, sends a frame over the new transport, and writes a chart of the new kind. Built in the copy of extend.py.
#include <cstdio>
#include <exception>
#include <string>

#include "chart/chart.h"
#include "lockstep/ops.h"
#include "lockstep/train.h"
#include "transport/memory_stream.h"

namespace {

using namespace lockstep;

bool check(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "failed: %s\n", what);
  return holds;
}

nn::ModelGraph build_cubed(nn::Graph& graph, const nn::BuildRequest& request) {
  const nn::Value images = nn::image_input(graph, request);
  const nn::Value hidden = ops::cube(nn::dense(ops::flatten(images), "hidden", 8));
  return nn::classifier(images, nn::dense(hidden, "out", request.classes));
}

bool trains() {
  train::Request request;
  request.models = {{.name = "cubed",
                     .description = "uses the new op",
                     .image = {1, 28, 28},
                     .defaults = {},
                     .options = {},
                     .build = build_cubed}};
  request.settings = {{"model", "cubed"}, {"dataset", "stripes"}, {"optimizer", "sign"},
                      {"lr", "0.001"},    {"steps", "20"},        {"quiet", "true"}};
  const train::Outcome outcome = train::train(request);
  return check(outcome.steps == 20, "20 steps") && check(outcome.train_loss > 0, "a loss") &&
         check(outcome.last_eval && outcome.last_eval->accuracy > 0.9, "stripes are learnt");
}

bool talks() {
  auto [left, right] = transport::memory_streams();
  const std::string text = "over memory";
  if (!left->write({.kind = 7}, std::as_bytes(std::span(text)))) return check(false, "write");
  const base::Result<transport::Frame> frame = right->read();
  left->close_writes();
  return check(frame && frame.value().header.kind == 7 && frame.value().text() == text, "the frame") &&
         check(!right->read(), "the end");
}

bool draws() {
  const std::string json =
      chart::to_json({.id = "a", .title = "A", .kind = chart::Kind::points, .x = {}, .y = {}, .series = {}});
  return check(json.find("\"kind\":\"points\"") != std::string::npos, "the kind's name") &&
         check(chart::asset("chart.js").find("draw.points(view)") != std::string::npos, "the script");
}

}  // namespace

int main() {
  try {
    return trains() && talks() && draws() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
