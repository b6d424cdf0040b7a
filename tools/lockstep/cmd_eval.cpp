// lockstep eval: loss and accuracy of a trained model.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "command_line.h"
#include "display/fetch_display.h"
#include "inspect/inference.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

struct EvalArguments {
  inspect::ModelSource source;
  inspect::EvaluateRequest request;
  int64_t threads = 0;
  bool json = false;
};

void print_json(const inspect::TrainedModel& model, const inspect::EvaluateRequest& request,
                const train::Metrics& metrics) {
  const nlohmann::ordered_json result{
      {"model", model.header.model},
      {"checkpoint", model.file},
      {"step", model.of_a_run() ? nlohmann::ordered_json(model.header.state.step) : nlohmann::ordered_json(nullptr)},
      {"split", request.split},
      {"examples", metrics.examples},
      {"loss", metrics.loss},
      {"accuracy", metrics.has_accuracy ? nlohmann::ordered_json(metrics.accuracy) : nlohmann::ordered_json(nullptr)},
  };
  terminal::print("{}\n", result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int run_eval(const EvalArguments& arguments, std::span<const nn::ModelDef> models) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  inspect::ModelSource source = arguments.source;
  source.models.assign(models.begin(), models.end());
  const inspect::TrainedModel model = inspect::load_best_model(source);
  inspect::EvaluateRequest request = arguments.request;
  request.threads = static_cast<int>(arguments.threads);
  request.fetch_progress = display::fetch_display(terminal, arguments.json);
  const train::Metrics metrics = inspect::evaluate(model, request);
  if (arguments.json) {
    print_json(model, request, metrics);
    return 0;
  }
  const std::string accuracy =
      metrics.has_accuracy ? fmt::format("accuracy {}, ", terminal.bold(terminal::percent(metrics.accuracy))) : "";
  const std::string step =
      model.of_a_run() ? fmt::format(" at step {}", terminal::grouped(model.header.state.step)) : "";
  terminal::print("{}{} on {}: {}loss {}\n", model.header.model, step,
                  terminal::counted(static_cast<uint64_t>(metrics.examples), request.split + " example"), accuracy,
                  terminal::loss_text(metrics.loss));
  return 0;
}

}  // namespace

void add_eval(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("eval", "Evaluate a trained model: accuracy and loss");
  const auto arguments = std::make_shared<EvalArguments>();
  app.add_option("RUN", arguments->source.run, "A run's folder or name, a checkpoint file, or an ONNX file").required();
  app.add_option("--checkpoint", arguments->source.checkpoint, "Checkpoint of the run [best]")
      .type_name("best|newest|FILE");
  app.add_option("--split", arguments->request.split, "Data to evaluate on [test]").type_name("test|validation|train");
  app.add_option("--dataset", arguments->request.dataset, "Data set [the run's]").type_name("NAME|PATH");
  app.add_option("--label-column", arguments->request.label_column,
                 "Label column of a CSV file: a name or a number, or none [the run's]")
      .type_name("NAME|N");
  app.add_option("--data", arguments->request.data, "Folder to search first for the data set").type_name("DIR");
  app.add_number("--limit", arguments->request.limit, "Use only the first N examples [0: all]");
  app.add_number("--batch", arguments->request.batch, "Examples per batch [500]", 1);
  app.add_number("--threads", arguments->threads, "Computing threads [0: one per core]");
  app.add_option("--runs-dir", arguments->source.runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "Examples:\n"
      "  lockstep eval runs/lenet-1                        the best checkpoint on the test images\n"
      "  lockstep eval lenet-1 --checkpoint newest\n"
      "  lockstep eval theirs.onnx --dataset mnist         a model from elsewhere\n"
      "  lockstep eval lenet-1 --split train --limit 10000 --json");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_eval(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
