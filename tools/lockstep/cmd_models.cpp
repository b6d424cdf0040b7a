// lockstep models: what can be trained.
#include <memory>
#include <string>

#include "command.h"
#include "lockstep/nn.h"
#include "model_facts.h"
#include "output.h"
#include "table.h"
#include "text.h"

namespace lockstep::tools {
namespace {

int run_models() {
  const Terminal terminal = Terminal::detect();
  Table table({{"model"}, {"parameters", Table::Align::right}, {"image"}, {"trains with"}, {"what it is"}});
  for (const nn::ModelDef& model : nn::zoo()) {
    const Shape& image = model.image;
    table.add({model.name, grouped(parameter_count(model)), fmt::format("{}x{}x{}", image[0], image[1], image[2]),
               training_text(model), model.description});
  }
  write_out(table.text(terminal));
  print("\nA model of your own is a file: lockstep train my-model.yaml (docs/models.md).\n");
  return 0;
}

}  // namespace

void add_models(CLI::App& program, Invocation& invocation) {
  CLI::App* app = program.add_subcommand("models", "The models that can be trained");
  app->footer("Examples:\n  lockstep models\n  lockstep describe lenet    one of them in detail");
  app->callback([&invocation] { invocation.run = run_models; });
}

}  // namespace lockstep::tools
