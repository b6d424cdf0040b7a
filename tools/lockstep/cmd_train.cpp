// lockstep train: flags from the settings table, a session, a display.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/wait_policy.h"
#include "closing.h"
#include "command.h"
#include "fetch_display.h"
#include "lockstep/error.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "train/configuration.h"
#include "train/machine.h"
#include "train/run_directory.h"
#include "train/session.h"

namespace lockstep::tools {
namespace {

using train::SettingDef;

constexpr const char* kExamples =
    "Examples:\n"
    "  lockstep train lenet                                      20 epochs on MNIST\n"
    "  lockstep train lenet --dataset fashion-mnist --epochs 5\n"
    "  lockstep train lr --batch 100 --lr 0.5 --stop-accuracy 0.92\n"
    "  lockstep train lenet --options pool=avg,activation=tanh   the model's own options\n"
    "  lockstep train my-model.yaml --dataset mnist              a model of your own: docs/models.md\n"
    "  lockstep train --config study.yaml --seed 7               settings from a file; flags win\n"
    "  lockstep train --resume runs/lenet-1                      go on after Ctrl-C, with the same bits\n"
    "  lockstep train --resume runs/lenet-1 --epochs 30          train a finished run longer";

struct Arguments {
  std::string model;
  std::string config;
  std::vector<std::pair<std::string, std::string>> settings;  ///< in the order given
};

bool is_flag(const SettingDef& def) { return std::holds_alternative<bool train::Settings::*>(def.member); }

std::string description(const SettingDef& def) {
  std::string text(def.help);
  if (!def.choices.empty()) text += fmt::format(" ({})", fmt::join(def.choices, ", "));
  const std::string value = train::default_text(def);
  if (!value.empty() && !is_flag(def)) text += fmt::format(" [{}]", value);
  return text;
}

void add_setting(CLI::App& app, const SettingDef& def, const std::shared_ptr<Arguments>& arguments) {
  const std::string name(def.name);
  const auto take = [arguments, name](const std::string& text) { arguments->settings.emplace_back(name, text); };
  CLI::Option* option = nullptr;
  if (is_flag(def)) {
    const auto take_flag = [take](int64_t count) { take(count > 0 ? "true" : "false"); };
    option = app.add_flag_function("--" + name, take_flag, description(def));
  } else {
    const auto take_all = [take](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) take(text);
    };
    option = app.add_option_function<std::vector<std::string>>("--" + name, take_all, description(def));
    option->type_name(std::string(def.value))->allow_extra_args(false);
  }
  option->group(std::string(def.group));
}

train::Configuration make_configuration(const Arguments& arguments, std::span<const nn::ModelDef> models) {
  train::Configuration configuration(models);
  if (!arguments.config.empty()) configuration.load_yaml(arguments.config);
  if (!arguments.model.empty()) configuration.set("model", arguments.model);
  for (const auto& [name, text] : arguments.settings) configuration.set(name, text);
  return configuration;
}

/// The settings before anything is made; of a resumed run, its own with the changes.
train::Settings resolve_early(train::Configuration configuration) {
  if (configuration.given("resume")) {
    const std::string runs = configuration.given_text("runs-dir");
    const std::string run = train::find_run(configuration.given_text("resume"), runs.empty() ? "runs" : runs);
    configuration.resume_from(run + "/config.yaml");
  }
  return configuration.resolve();
}

int run_train(const Arguments& arguments, const Invocation& invocation) {
  const train::Configuration configuration = make_configuration(arguments, invocation.models);
  const train::Settings early = resolve_early(configuration);
  base::ensure_wait_policy(train::wait_policy(early), early.wait_policy != "auto", invocation.argv);

  const Terminal terminal = Terminal::detect();
  const bool quiet = early.quiet;
  Progress progress(terminal, early.eval_split);
  train::SessionOptions options;
  if (!quiet) options.hooks.push_back(&progress);
  options.interrupt = interrupt_flag();
  options.fetch_progress = fetch_display(terminal, quiet);
  train::Session session(configuration, options);
  const bool finished = session.finished();
  if (!quiet && !finished) print_opening(terminal, session.settings(), session.start_event());

  catch_interrupts();
  const train::Outcome outcome = session.run();
  if (quiet) {
    print_result_line(session.settings(), outcome);
  } else {
    print_closing(terminal, session.settings(), outcome, invocation.program);
  }
  return outcome.reason == train::StopReason::interrupted && !outcome.already_finished ? interrupt_exit_code() : 0;
}

}  // namespace

void add_train(CLI::App& program, Invocation& invocation) {
  CLI::App* app = program.add_subcommand("train", "Train a model, or go on with a run");
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("MODEL", arguments->model,
                  "What to train: `lockstep models` lists them; or a model file; none with --resume");
  app->add_option("--config", arguments->config, "Settings from a YAML file, one `key: value` per line; flags win")
      ->type_name("FILE")
      ->take_last();
  for (const SettingDef& def : train::settings_table()) {
    if (def.name != "model") add_setting(*app, def, arguments);
  }
  app->footer(kExamples);
  app->callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_train(*arguments, invocation); };
  });
}

}  // namespace lockstep::tools
