// The program `lockstep`: finds the command, runs it, and turns what it throws into one line and an exit code
// (0 fine, 1 failed, 2 wrong usage, 128 + n ended by signal n).
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "command.h"
#include "help.h"
#include "lockstep/error.h"
#include "output.h"
#include "version.h"

namespace lockstep::tools {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int fail(std::string message, int code) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  flush_out();
  std::fprintf(stderr, "lockstep: %s\n", message.c_str());
  return code;
}

void describe_program(CLI::App& program) {
  program.name("lockstep");
  program.formatter(std::make_shared<HelpFormatter>());
  program.set_help_flag("-h,--help", "Show this help, or that of a command");
  program.set_version_flag("--version", std::string("lockstep ") + kVersion, "Show the version");
  program.require_subcommand(0, 1);
  program.footer(
      "Examples:\n"
      "  lockstep train lenet                       train LeNet-5 on MNIST\n"
      "  lockstep train lr --dataset fashion-mnist  softmax regression on Fashion-MNIST\n"
      "  lockstep eval runs/lenet-1                 accuracy and loss on the test images\n"
      "  lockstep predict runs/lenet-1 digit.png    what does the model see?");
}

int run(int argc, char** argv) {
  CLI::App program("Lockstep trains neural networks.");
  describe_program(program);
  Invocation invocation{nullptr, argv};
  for (const auto add :
       {add_train, add_eval, add_predict, add_export, add_data, add_models, add_describe, add_info, add_docs}) {
    add(program, invocation);
  }
  try {
    parse(program, argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* app = &program;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    write_out(app->help());
    return 0;
  } catch (const CLI::Success& version) {
    print("{}\n", version.what());
    return 0;
  }
  if (invocation.run) return invocation.run();
  write_out(program.help());
  return 0;
}

int guarded(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    finish_output();
    return code;
  } catch (const UsageError& error) {
    return fail(error.what(), kWrongUsage);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailed);
  }
}

}  // namespace
}  // namespace lockstep::tools

int main(int argc, char** argv) {
  // Writing that fails is an error to report, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return lockstep::tools::guarded(argc, argv);
}
