// lockstep trace: merges the traces of a run's roles.
#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "command_line.h"
#include "lockstep/error.h"
#include "observe/trace/merge.h"
#include "run/run_directory.h"
#include "settings/settings.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

constexpr const char* kTraceExamples =
    "Examples:\n"
    "  lockstep train lenet --workers 2 --ps 1 --trace\n"
    "  lockstep trace runs/lenet-1";

struct TraceArguments {
  std::string run;
  std::string runs_dir = settings::Settings{}.runs_dir;
};

int run_trace(const TraceArguments& arguments) {
  const std::string run = run::find_run(arguments.run, arguments.runs_dir);
  const observe::MergedTrace merged = observe::merge_traces(run);
  for (const std::string& problem : merged.problems)
    terminal::print_note(terminal::Terminal::detect(), "warning", problem);
  const std::string alone = run + "/" + observe::kTraceFile;
  std::error_code ignored;
  if (merged.path.empty() && !std::filesystem::exists(alone, ignored)) {
    throw UsageError("run " + run + " has no trace; train with --trace");
  }
  if (merged.path.empty()) {
    terminal::print("the trace is {}\n", alone);
  } else {
    terminal::print("the trace of {} is {}\n", terminal::counted(merged.roles, "role"), merged.path);
  }
  terminal::print("to view it, open it in https://ui.perfetto.dev or in chrome://tracing\n");
  return 0;
}

}  // namespace

void add_trace(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("trace", "Merge the traces of a run's roles, and tell how to view them");
  const auto arguments = std::make_shared<TraceArguments>();
  app.add_option("RUN", arguments->run, "The run's folder, or its name").required();
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.footer(kTraceExamples);
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return run_trace(*arguments); }; });
}

}  // namespace lockstep::tools
