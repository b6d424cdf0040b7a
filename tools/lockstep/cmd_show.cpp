// lockstep show: a run at a glance.
#include <memory>
#include <string>

#include "command.h"
#include "command_line.h"
#include "display/run_curves.h"
#include "display/run_tables.h"
#include "launch/ssh_launch.h"
#include "records/why.h"
#include "run_choice.h"
#include "run_json.h"
#include "terminal/output.h"

namespace lockstep::tools {
namespace {

struct ShowArguments {
  std::string run;
  std::string runs_dir = "runs";
  bool json = false;
};

/// Prints a heading and its text; nothing if the text is empty.
void print_part(const terminal::Terminal& terminal, std::string_view heading, const std::string& text) {
  if (text.empty()) return;
  terminal::print("\n{}{}", heading.empty() ? "" : terminal.bold(heading) + "\n", text);
}

/// Returns the first sentence of `lockstep why`; nothing for a run that is too short or recorded too little.
std::string limit_text(const records::RunRecord& run, size_t width) {
  const records::Diagnosis diagnosis = records::diagnose(run);
  if (diagnosis.causes.empty()) return "";
  return wrapped_text(diagnosis.headline, width, "  ");
}

int run_show(const ShowArguments& arguments, const std::string& program) {
  const records::RunRecord run = choose_run(arguments.run, arguments.runs_dir);
  if (arguments.json) {
    terminal::write_out(run_json(run));
    return 0;
  }
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const size_t width = terminal::Terminal::width();
  terminal::print("{}", run_headline(terminal, run, width));
  print_part(terminal, "", display::result_lines(terminal, run));
  print_part(terminal, "", display::run_curves(terminal, run, width));
  print_part(terminal, "", display::role_table(terminal, run, width));
  print_part(terminal, "where the time went", display::phase_text(terminal, run, width));
  print_part(terminal, "", display::peak_table(terminal, run, width));
  print_part(terminal, "what limited it", limit_text(run, width));
  print_part(terminal, "", warning_lines(terminal, run));
  terminal::print("\nnext:  {0} why {1}\n       {0} compare {1} RUN...\n       {0} tensorboard {1}\n", program,
                  launch::shell_word(run.path));
  return 0;
}

}  // namespace

void add_show(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("show", "Show a run at a glance: curves, roles, phases, resources");
  const auto arguments = std::make_shared<ShowArguments>();
  app.add_option("RUN", arguments->run, "A run's folder or name [the newest run]");
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "Examples:\n"
      "  lockstep show              the newest run\n"
      "  lockstep show lenet-1\n"
      "  lockstep show runs/lenet-1 --json");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_show(*arguments, invocation.program); };
  });
}

}  // namespace lockstep::tools
