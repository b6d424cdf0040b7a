// lockstep models: the models that can be trained.
#include <algorithm>
#include <string>

#include "command.h"
#include "command_line.h"
#include "inspect/describe.h"
#include "lockstep/nn.h"
#include "model_facts.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

void add_row(terminal::Table& table, const nn::ModelDef& model) {
  const Shape& image = model.image;
  table.add({model.name, terminal::grouped(inspect::parameter_count(model)),
             fmt::format("{}x{}x{}", image[0], image[1], image[2]), training_text(model), model.description});
}

int run_models(const Invocation& invocation) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  terminal::Table table(
      {{"model"}, {"parameters", terminal::Table::Align::right}, {"image"}, {"trains with"}, {"description"}});
  for (const nn::ModelDef& model : nn::zoo()) {
    const auto same = [&](const nn::ModelDef& own) { return own.name == model.name; };
    if (std::none_of(invocation.models.begin(), invocation.models.end(), same)) add_row(table, model);
  }
  for (const nn::ModelDef& model : invocation.models) add_row(table, model);
  terminal::write_out(table.text(terminal));
  terminal::print("\nA model of your own is a file: {} train my-model.yaml (docs/models.md).\n", invocation.program);
  return 0;
}

}  // namespace

void add_models(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("models", "List the models that can be trained");
  app.footer("Examples:\n  lockstep models\n  lockstep describe lenet    one of them in detail");
  app.callback([&invocation] { invocation.run = [&invocation] { return run_models(invocation); }; });
}

}  // namespace lockstep::tools
