// lockstep models: what can be trained.
#include <memory>
#include <string>

#include "command.h"
#include "lockstep/nn.h"
#include "output.h"
#include "table.h"
#include "text.h"

namespace lockstep::tools {
namespace {

size_t parameter_count(const nn::ModelDef& model) {
  graph::Graph graph;
  nn::BuildRequest request;
  request.image = model.image;
  request.classes = model.classes;
  nn::build(graph, model, request);
  return graph.parameter_count();
}

std::string training_text(const nn::ModelDef& model) {
  const nn::TrainingDefaults& defaults = model.defaults;
  return fmt::format("{} {}, batch {}, {}", defaults.optimizer, defaults.learning_rate, defaults.batch,
                     counted(static_cast<uint64_t>(defaults.epochs), "epoch"));
}

int run_models() {
  const Terminal terminal = Terminal::detect();
  Table table({{"model"}, {"parameters", Table::Align::right}, {"image"}, {"trains with"}, {"what it is"}});
  for (const nn::ModelDef& model : nn::zoo()) {
    const Shape& image = model.image;
    table.add({model.name, grouped(parameter_count(model)), fmt::format("{}x{}x{}", image[0], image[1], image[2]),
               training_text(model), model.description});
  }
  write_out(table.text(terminal));
  return 0;
}

}  // namespace

void add_models(CLI::App& program, Invocation& invocation) {
  CLI::App* app = program.add_subcommand("models", "The models that can be trained");
  app->footer("Examples:\n  lockstep models\n  lockstep describe lenet    one of them in detail");
  app->callback([&invocation] { invocation.run = run_models; });
}

}  // namespace lockstep::tools
