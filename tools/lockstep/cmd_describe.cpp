// lockstep describe: a model's layers and costs.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "checkpoint/checkpoint_store.h"
#include "command.h"
#include "command_line.h"
#include "inspect/describe.h"
#include "lockstep/error.h"
#include "ops/op_table.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "settings/machine.h"
#include "settings/settings.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

struct DescribeArguments {
  std::string model;
  std::string options;
  std::string optimizer;
  int64_t batch = 0;
  int64_t threads = 0;
  std::string precision = "f32";
  bool exact_conv = false;
  bool kernels = false;
};

std::string flop_text(uint64_t flops) { return flops == 0 ? "" : terminal::scaled(static_cast<double>(flops)); }

void print_heading(const terminal::Terminal& terminal, const nn::ModelDef& def,
                   const inspect::ModelDescription& model) {
  terminal::print("{}: {}\n", terminal.bold(model.name), model.description);
  const std::string examples =
      model.image[1] == 1 ? fmt::format("rows of {} values", model.image.elements()) : "images " + model.image.str();
  terminal::print("{}, batch {}\n", examples, model.batch);
  for (const nn::ModelOption& option : def.options) {
    const std::string allowed = option.allowed.empty() ? "" : fmt::format(" ({})", fmt::join(option.allowed, " or "));
    const std::string description = option.description.empty() ? "" : ": " + option.description;
    terminal::print("option {}={}{}{}\n", option.name, model.options.at(option.name), allowed, description);
  }
  terminal::print("\n");
}

void print_layers(const terminal::Terminal& terminal, const inspect::ModelDescription& model) {
  constexpr auto kRight = terminal::Table::Align::right;
  terminal::Table table(
      {{"layer"}, {"output"}, {"parameters", kRight}, {"flop forward", kRight}, {"backward", kRight}, {"ops"}});
  for (const inspect::LayerInfo& layer : model.layers) {
    table.add({layer.name, layer.output.str(), layer.parameters == 0 ? "" : terminal::grouped(layer.parameters),
               flop_text(layer.forward_flops), flop_text(layer.backward_flops), layer.ops});
  }
  table.add({"total", "", terminal::grouped(model.parameters), flop_text(model.forward_flops),
             flop_text(model.backward_flops), ""});
  terminal::print("{}\n", table.text(terminal));
}

void print_memory(const terminal::Terminal& terminal, const inspect::ModelDescription& model) {
  const inspect::MemoryInfo& memory = model.memory;
  const auto row = [](const std::string& name, const std::string& value) {
    terminal::print("  {}{}\n", terminal::padded_right(name, 28), value);
  };
  terminal::print("{}\n", terminal.bold("memory of a training step"));
  row("activations and scratch", fmt::format("{} ({} without reuse)", terminal::bytes_text(memory.arena_bytes),
                                             terminal::bytes_text(memory.unshared_bytes)));
  row("parameters", terminal::bytes_text(memory.parameter_bytes));
  row("gradients", terminal::bytes_text(memory.gradient_bytes));
  row(fmt::format("state of {}", model.optimizer), terminal::bytes_text(memory.optimizer_bytes));
}

void print_kernels(const terminal::Terminal& terminal, const inspect::ModelDescription& model) {
  terminal::Table table({{"kernel"}, {"op"}, {"implementation"}, {"output"}, {"type"}, {"layout"}, {"when"}});
  for (const program::KernelInfo& kernel : model.kernels) {
    table.add({kernel.name, std::string(ops::name(kernel.op)), std::string(kernel.implementation),
               kernel.type.shape.str(), std::string(name(kernel.type.dtype)), kernel.layout.str(),
               kernel.once ? "once" : (kernel.backward ? "backward" : "forward")});
  }
  terminal::print("\n{}", table.text(terminal));
}

/// Returns the folder of a run that the name means; empty if it means a model.
std::string run_folder(const std::string& name, std::span<const nn::ModelDef> models) {
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return run::find_run(name, "runs");
  const bool model = std::any_of(models.begin(), models.end(), [&](const auto& def) { return def.name == name; });
  const std::string folder = "runs/" + name;
  return !model && std::filesystem::exists(folder + "/config.yaml", ignored) ? folder : "";
}

/// Takes the examples' shape and the classes from the run's newest checkpoint, if it has one that can be read: those of
/// own data are not the model's.
void add_data_shape(const std::string& folder, inspect::DescribeRequest& request) {
  try {
    std::string path;
    const checkpoint::CheckpointHeader header =
        checkpoint::CheckpointStore(folder + "/checkpoints").load_newest(path).header;
    request.image = header.image;
    request.classes = header.classes;
  } catch (const Error&) {
  }
}

/// Returns the request for a model, or for a run's model as it was trained.
inspect::DescribeRequest request_for(const std::string& name, std::span<const nn::ModelDef> models,
                                     settings::Configuration& configuration) {
  inspect::DescribeRequest request;
  const std::string folder = run_folder(name, models);
  if (folder.empty()) {
    request.model = &configuration.model(name);
    request.batch = request.model->defaults.batch;
    return request;
  }
  configuration.resume_from(folder + "/config.yaml");
  const settings::Settings run = configuration.resolve();
  request.model = &configuration.model(run.model);
  request.options = run.options;
  request.batch = run.batch;
  request.optimizer = settings::value_text(run, "optimizer");
  add_data_shape(folder, request);
  return request;
}

int run_describe(const DescribeArguments& arguments, std::span<const nn::ModelDef> models) {
  settings::Settings settings;
  settings.threads = arguments.threads;
  const settings::SettingDef& options = *settings::find_setting("options");
  if (!arguments.options.empty()) settings::assign(settings, options, arguments.options, "--options");
  settings::assign(settings, *settings::find_setting("precision"), arguments.precision, "--precision");
  settings::Configuration configuration(models);  // owns the model if it is a file
  inspect::DescribeRequest request = request_for(arguments.model, models, configuration);
  for (const auto& [option, value] : settings.options) request.options[option] = value;
  if (arguments.batch > 0) request.batch = arguments.batch;
  if (!arguments.optimizer.empty()) request.optimizer = arguments.optimizer;
  request.threads = settings::resolve_threads(settings);
  request.precision = settings.precision;
  request.exact_conv = arguments.exact_conv;
  const inspect::ModelDescription model = inspect::describe(request);

  const terminal::Terminal terminal = terminal::Terminal::detect();
  print_heading(terminal, *request.model, model);
  print_layers(terminal, model);
  print_memory(terminal, model);
  if (arguments.kernels) print_kernels(terminal, model);
  return 0;
}

}  // namespace

void add_describe(const Command& program, Invocation& invocation) {
  const Command app =
      program.add_command("describe", "Show a model's layers, shapes, parameters, arithmetic and memory");
  const auto arguments = std::make_shared<DescribeArguments>();
  app.add_option("MODEL|RUN", arguments->model,
                 "A name from `lockstep models`, a model file, or a run's folder or name")
      .required();
  app.add_number("--batch", arguments->batch, "Examples per batch [the model's]", 1);
  app.add_option("--options", arguments->options, "Options of the model, separated by commas").type_name("KEY=VALUE");
  app.add_option("--optimizer", arguments->optimizer, "Optimizer whose state is counted [the model's]")
      .type_name("sgd|momentum|adam");
  app.add_number("--threads", arguments->threads, "Computing threads [0: one per core]");
  app.add_option("--precision", arguments->precision, "Precision of wide convolutions and large products [f32]")
      .type_name("f32|bf16");
  app.add_flag("--exact-conv", arguments->exact_conv, std::string(settings::find_setting("exact-conv")->help));
  app.add_flag("--kernels", arguments->kernels, "Show the implementation of each node");
  app.footer(
      "Examples:\n"
      "  lockstep describe lenet --batch 64\n"
      "  lockstep describe lenet --options pool=avg --kernels\n"
      "  lockstep describe my-model.yaml");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_describe(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
