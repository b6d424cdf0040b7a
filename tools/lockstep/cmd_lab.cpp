// lockstep lab: experiments, from a file to a report.
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "lab_commands.h"

namespace lockstep::tools {
namespace {

constexpr const char* kLabExamples =
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
  app.add_option("--set", arguments->set, "A setting of all runs that the file does not vary, as dataset=fashion-mnist")
      .type_name("NAME=VALUE")
      .repeated();
  app.add_flag("--local", arguments->local,
               "Processes of this machine instead of emulated nodes and hosts (needs no root)");
  app.add_flag("--dry-run", arguments->dry_run, "Only check the file, list its runs and estimate their time");
  app.add_flag("--again", arguments->again, "Make finished runs again, too");
  app.add_option("--lab-dir", arguments->lab_dir, "Where experiments are kept [lab]").type_name("DIR");
  app.add_option("--data", arguments->data, "Folder to look for data sets in first").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(kLabExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return lab_run(*arguments, invocation); };
  });
}

using Look = int (*)(const LabLookArguments&);

/// A command that looks at an experiment of the lab.
Command add_look(const Command& lab, Invocation& invocation, const char* name, const char* what, Look look,
                 const std::shared_ptr<LabLookArguments>& arguments) {
  const Command app = lab.add_command(name, what);
  app.add_option("--lab-dir", arguments->lab_dir, "Where experiments are kept [lab]").type_name("DIR");
  app.callback([arguments, look, &invocation] { invocation.run = [arguments, look] { return look(*arguments); }; });
  return app;
}

void add_name(const Command& app, LabLookArguments& arguments) {
  app.add_option("NAME", arguments.name, "The experiment, as `lockstep lab list` calls it").required();
  app.add_option("--scale", arguments.scale, "Which of its scales [the last one run]").type_name("NAME");
}

void add_looks(const Command& lab, Invocation& invocation) {
  const auto listed = std::make_shared<LabLookArguments>();
  const Command list = add_look(lab, invocation, "list", "Experiments of the lab", lab_list, listed);
  list.add_flag("--json", listed->json, "Print JSON");

  const auto shown = std::make_shared<LabLookArguments>();
  const Command show = add_look(lab, invocation, "show", "Runs of an experiment and their results", lab_show, shown);
  add_name(show, *shown);
  show.add_flag("--json", shown->json, "Print JSON");

  const auto told = std::make_shared<LabLookArguments>();
  const Command report = add_look(lab, invocation, "report", "Write the report of an experiment", lab_report, told);
  add_name(report, *told);
  report.add_option("-o,--output", told->output, "The page [report.html in the experiment's folder]").type_name("FILE");

  const auto given = std::make_shared<LabLookArguments>();
  const Command out = add_look(lab, invocation, "export", "Results of an experiment as CSV or JSON", lab_export, given);
  add_name(out, *given);
  out.add_option("--to", given->to, "csv or json [csv]").type_name("FORMAT");
  out.add_flag("--workers", given->workers, "A row for each role of a run");
  out.add_flag("--long", given->long_form, "A row for each measured value (CSV)");
  out.add_option("-o,--output", given->output, "The file [standard output]").type_name("FILE");
}

}  // namespace

void add_lab(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("lab", "Run experiments: many trainings, measured, with a report");
  add_run(app, invocation);
  add_looks(app, invocation);
  app.footer(kLabExamples);
  app.callback_without_command([&invocation](const std::string& help) {
    invocation.run = [help] {
      terminal::write_out(help);
      return 0;
    };
  });
}

}  // namespace lockstep::tools
