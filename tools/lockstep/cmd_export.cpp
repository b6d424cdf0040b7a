// lockstep export: a trained model as an ONNX file.
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "base/file.h"
#include "command.h"
#include "command_line.h"
#include "inspect/inference.h"
#include "interchange/onnx_export.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

struct ExportArguments {
  inspect::ModelSource source;
  std::string file;
  std::string output;  ///< the same, as an option
  int64_t batch = 0;
};

/// Returns the facts about the training that a reader of the file needs; keys as in config.yaml.
std::vector<std::pair<std::string, std::string>> metadata(const checkpoint::CheckpointHeader& header) {
  std::vector<std::pair<std::string, std::string>> entries{{"model", header.model},
                                                           {"step", std::to_string(header.state.step)}};
  for (const auto& [name, value] : header.options) entries.emplace_back("option." + name, value);
  for (const char* name : {"dataset", "pixels"}) {
    const auto setting = header.settings.find(name);
    if (setting != header.settings.end()) entries.emplace_back(name, setting->second);
  }
  if (!header.class_names.empty())
    entries.emplace_back("classes", fmt::format("{}", fmt::join(header.class_names, ",")));
  return entries;
}

const std::string& file_of(const ExportArguments& arguments) {
  if (!arguments.file.empty() && !arguments.output.empty()) {
    throw UsageError(fmt::format("export: give one file to write, not both '{}' and --output '{}'", arguments.file,
                                 arguments.output));
  }
  const std::string& file = arguments.output.empty() ? arguments.file : arguments.output;
  if (file.empty()) throw UsageError("export: the file to write is missing; its name ends in .onnx");
  if (!file.ends_with(".onnx")) throw UsageError("export: '" + file + "' must end in .onnx");
  return file;
}

int run_export(const ExportArguments& arguments, std::span<const nn::ModelDef> models) {
  const std::string& path = file_of(arguments);
  inspect::ModelSource source = arguments.source;
  source.models.assign(models.begin(), models.end());
  const inspect::TrainedModel model = inspect::load_best_model(source);
  nn::BuildRequest request{.batch = arguments.batch,
                           .training = false,
                           .image = model.spec.image,
                           .classes = model.spec.classes,
                           .options = model.spec.options};
  const std::span<const float> values(model.values(), model.header.parameter_count());
  const interchange::OnnxExport file =
      interchange::export_onnx(*model.spec.model, request, values, metadata(model.header));
  base::write_whole_file(path, file.bytes);
  terminal::print("{} at step {} -> {} ({}, opset {}, {}, {} parameters)\n", model.header.model,
                  terminal::grouped(model.header.state.step), path, terminal::bytes_text(file.bytes.size()),
                  interchange::kExportOpset, terminal::counted(file.nodes, "node"), terminal::grouped(file.parameters));
  terminal::print("  input   {}\n", file.input);
  for (const std::string& output : file.outputs) terminal::print("  output  {}\n", output);
  return 0;
}

}  // namespace

void add_export(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("export", "Export a trained model as an ONNX file");
  const auto arguments = std::make_shared<ExportArguments>();
  app.add_option("RUN", arguments->source.run, "A run's folder or name, or a checkpoint file").required();
  app.add_option("FILE", arguments->file, "File to write; its name ends in .onnx");
  app.add_option("-o,--output", arguments->output, "The same as FILE").type_name("FILE");
  app.add_option("--checkpoint", arguments->source.checkpoint, "Checkpoint of the run [best]")
      .type_name("best|newest|FILE");
  app.add_number("--batch", arguments->batch, "Fixed number of images [0: any number]");
  app.add_option("--runs-dir", arguments->source.runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.footer(
      "The exported model takes `images` as in training and returns a classifier's `scores` and `probabilities`, or\n"
      "`output`. See docs/onnx.md.\n\n"
      "Examples:\n"
      "  lockstep export runs/lenet-1 lenet.onnx\n"
      "  lockstep export lenet-1 lenet.onnx --checkpoint newest --batch 1");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_export(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
