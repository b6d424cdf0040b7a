// lockstep lab: experiments, from a file to a report.
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "lab_commands.h"

namespace lockstep::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  lockstep lab run experiments/study-3.yaml --dry-run        what it would train, and about how long\n"
    "  lockstep lab run experiments/study-3.yaml --scale quick    train it and write the report\n"
    "  lockstep lab run experiments/study-3.yaml --only 'lr-*'    only these runs\n"
    "  lockstep lab list                                          experiments of the lab\n"
    "  lockstep lab show study-3                                  its runs and their results\n"
    "  lockstep lab report study-3 -o study-3.html                the report once more\n"
    "  lockstep lab export study-3 --to csv -o study-3.csv        every run with what was set and measured";

void add_run(const Command& lab, Invocation& invocation) {
  const Command app = lab.add_command("run", "Train what an experiment file asks for, and report");
  const auto arguments = std::make_shared<LabRunArguments>();
  app.add_option("FILE", arguments->file, "The experiment (docs/experiments.md)").required();
  app.add_option("--scale", arguments->scale, "Which of the file's scales, as quick or full [its first]")
      .type_name("NAME");
  app.add_option("--only", arguments->only, "Only runs whose keys match, as 'lr-*'; may be given several times")
      .type_name("PATTERN")
      .repeated();
  app.add_flag("--dry-run", arguments->dry_run, "Only check the file, list its runs and estimate their time");
  app.add_flag("--again", arguments->again, "Make finished runs again, too");
  app.add_option("--lab-dir", arguments->lab_dir, "Where experiments are kept [lab]").type_name("DIR");
  app.add_option("--data", arguments->data, "Folder to look for data sets in first").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(kExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return lab_run(*arguments, invocation); };
  });
}

}  // namespace

void add_lab(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("lab", "Run experiments: many trainings, measured, with a report");
  add_run(app, invocation);
  app.footer(kExamples);
  app.callback_without_command([&invocation](const std::string& help) {
    invocation.run = [help] {
      write_out(help);
      return 0;
    };
  });
}

}  // namespace lockstep::tools
