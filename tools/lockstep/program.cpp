// The command line: finds the command, runs it, and turns exceptions into one line and an exit code.
#include "lockstep/program.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "command.h"
#include "command_line.h"
#include "last_words.h"
#include "launch/role_failure.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/text.h"
#include "version.h"

namespace lockstep::tools {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

/// Internal argument before the command: the file to which a failure is written as data.
constexpr std::string_view kFailureFile = "--failure-file=";

/// First argument of the scripts of `completion`: the other words are those that the user has typed.
constexpr std::string_view kComplete = "--complete";

int fail(const std::string& program, const std::exception& error, int code) {
  std::string message = base::error_text(error);
  message = terminal::replaced(std::move(message), "`lockstep ", "`" + program + " ");
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  launch::RoleFailure failure = launch::failure_of(error);
  if (failure.output.empty()) failure.text = message;
  write_failure(failure);
  terminal::flush_out();
  std::fprintf(stderr, "%s: %s\n", program.c_str(), message.c_str());
  return code;
}

constexpr auto kExamples =
    "Examples:\n"
    "  lockstep train lenet                       train LeNet-5 on MNIST\n"
    "  lockstep train lr --dataset fashion-mnist  softmax regression on Fashion-MNIST\n"
    "  lockstep eval runs/lenet-1                 accuracy and loss on the test images\n"
    "  lockstep predict runs/lenet-1 digit.png    predict the class of an image";

/// Checks the properties that `models` and `describe` rely on, for every command.
void check_models(std::span<const nn::ModelDef> models) {
  std::set<std::string> names;
  for (const nn::ModelDef& model : models) {
    const auto reject = [&](const std::string& what) {
      throw UsageError("run_program: model '" + model.name + "' " + what);
    };
    if (model.name.empty()) reject("has no name");
    if (!names.insert(model.name).second) reject("appears twice");
    if (!model.build) reject("has no function `build`");
    if (model.image.rank() != 3) {
      reject("has the image shape " + model.image.str() + "; it takes [channels, height, width]");
    }
  }
}

// clang-format off
using AddCommand = void (*)(const Command& program, Invocation& invocation);
/// All commands, in the order of the help.
constexpr auto kCommands = std::to_array<AddCommand>({
  add_train,
  add_launch,
  add_runs,
  add_show,
  add_why,
  add_compare,
  add_plan,
  add_profile,
  add_lab,
  add_dash,
  add_tensorboard,
  add_trace,
  add_monitor,
  add_guest,
  add_eval,
  add_predict,
  add_export,
  add_data,
  add_models,
  add_describe,
  add_keys,
  add_info,
  add_completion,
  add_docs,
});
// clang-format on

int run(int argc, char** argv, Invocation invocation) {
  check_models(invocation.models);
  CommandLine line(invocation.program, "Lockstep trains neural networks.");
  line.version(std::string("lockstep ") + kVersion);
  line.root().footer(kExamples);
  for (const AddCommand add : kCommands) add(line.root(), invocation);
  line.add_help_command();
  if (argc > 1 && argv[1] == kComplete) {
    terminal::write_out(line.completions({argv + 2, argv + argc}, invocation.models));
    return 0;
  }
  invocation.man_pages = [&line] { return line.man_pages(kVersion); };
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]).starts_with(kFailureFile)) words.erase(words.begin() + 1);
  if (const auto text = line.parse(static_cast<int>(words.size()), words.data())) {
    terminal::write_out(*text);
    return 0;
  }
  if (invocation.run) return invocation.run();
  terminal::write_out(line.help());
  return 0;
}

int guarded(int argc, char** argv, const Invocation& invocation) {
  const std::string& program = invocation.program;
  try {
    const int code = run(argc, argv, invocation);
    terminal::finish_output();
    return code;
  } catch (const launch::RunError& error) {
    const bool usage = error.failure().kind == launch::RoleFailure::Kind::usage;
    return fail(program, error, usage ? kWrongUsage : kFailed);
  } catch (const UsageError& error) {
    return fail(program, error, kWrongUsage);
  } catch (const std::exception& error) {
    return fail(program, error, kFailed);
  }
}

/// Returns the name under which the program was called, without the folder.
std::string program_name(int argc, char** argv) {
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  return name.empty() ? "lockstep" : name;
}

}  // namespace
}  // namespace lockstep::tools

namespace lockstep {

int run_program(int argc, char** argv, std::vector<nn::ModelDef> models) {
  // A failed write is an error to report, and must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  base::raise_open_files();
  tools::install_last_words();
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first.starts_with(tools::kFailureFile)) {
    tools::report_failures_in(std::string(first.substr(tools::kFailureFile.size())));
  }
  return tools::guarded(argc, argv, {nullptr, argv, tools::program_name(argc, argv), models, {}});
}

}  // namespace lockstep
