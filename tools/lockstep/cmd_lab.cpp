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
    "  lockstep lab run experiments/study-3.yaml --dry-run        list its runs and estimate their time\n"
    "  lockstep lab run experiments/study-3.yaml --scale quick    train it and write the report\n"
    "  lockstep lab run experiments/study-3.yaml --only 'lr-*'    only these runs\n"
    "  lockstep lab list                                          experiments of the lab\n"
    "  lockstep lab show study-3                                  its runs and their results\n"
    "  lockstep lab report study-3 -o study-3.html                write the report again\n"
    "  lockstep lab export study-3 --to csv -o study-3.csv        every run with its settings and measurements\n"
    "  lockstep lab export study-3 --to pdf -o figures            the report's plots; also svg, and tables as markdown";

void add_run(const Command& lab, Invocation& invocation) {
  const Command app = lab.add_command("run", "Train the runs of an experiment file and write a report");
  const auto arguments = std::make_shared<LabRunArguments>();
  app.add_option("FILE", arguments->file, "Experiment file (docs/experiments.md)").required();
  app.add_option("--scale", arguments->scale, "Scale from the file, such as quick or full [the first]")
      .type_name("NAME");
  app.add_option("--only", arguments->only, "Only runs whose keys match, such as 'lr-*'; may be repeated")
      .type_name("PATTERN")
      .repeated();
  app.add_option("--set", arguments->set,
                 "Setting for all runs, such as dataset=fashion-mnist; the file must not vary it")
      .type_name("NAME=VALUE")
      .repeated();
  app.add_flag("--local", arguments->local,
               "Use processes of this machine instead of emulated nodes and hosts (needs no root)");
  app.add_flag("--dry-run", arguments->dry_run, "Only check the file, list its runs and estimate their time");
  app.add_flag("--again", arguments->again, "Repeat finished runs, too");
  app.add_number("--retries", arguments->retries, "Further tries of a run that other programs disturbed [2]")
      .type_name("N");
  app.add_option("--lab-dir", arguments->lab_dir, "Folder of the lab's experiments [lab]").type_name("DIR");
  app.add_option("--data", arguments->data, "Folder to search first for data sets").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(kLabExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return lab_run(*arguments, invocation); };
  });
}

using Look = int (*)(const LabLookArguments&);

/// Adds a command that shows an experiment of the lab.
Command add_look(const Command& lab, Invocation& invocation, const char* name, const char* what, Look look,
                 const std::shared_ptr<LabLookArguments>& arguments) {
  const Command app = lab.add_command(name, what);
  app.add_option("--lab-dir", arguments->lab_dir, "Folder of the lab's experiments [lab]").type_name("DIR");
  app.callback([arguments, look, &invocation] { invocation.run = [arguments, look] { return look(*arguments); }; });
  return app;
}

void add_name(const Command& app, LabLookArguments& arguments) {
  app.add_option("EXPERIMENT", arguments.name, "Name of the experiment, see `lockstep lab list`").required();
  app.add_option("--scale", arguments.scale, "Scale of the experiment [the last one run]").type_name("NAME");
}

void add_looks(const Command& lab, Invocation& invocation) {
  const auto listed = std::make_shared<LabLookArguments>();
  const Command list = add_look(lab, invocation, "list", "List the experiments of the lab", lab_list, listed);
  list.add_flag("--json", listed->json, "Print JSON");

  const auto shown = std::make_shared<LabLookArguments>();
  const Command show =
      add_look(lab, invocation, "show", "Show the runs of an experiment and their results", lab_show, shown);
  add_name(show, *shown);
  show.add_flag("--json", shown->json, "Print JSON");

  const auto told = std::make_shared<LabLookArguments>();
  const Command report = add_look(lab, invocation, "report", "Write the report of an experiment", lab_report, told);
  add_name(report, *told);
  report.add_option("-o,--output", told->output, "HTML file to write [report.html in the experiment's folder]")
      .type_name("FILE");
  report.add_flag("--measure", told->measure,
                  "Measure finished runs again from their folders first: fields may be new or measured otherwise");

  const auto given = std::make_shared<LabLookArguments>();
  const Command out =
      add_look(lab, invocation, "export", "Export the results, tables or plots of an experiment", lab_export, given);
  add_name(out, *given);
  out.add_option("--to", given->to,
                 "Format: csv or json of the runs, markdown or latex of the tables, svg or pdf of the plots [csv]")
      .type_name("FORMAT");
  out.add_flag("--tables", given->tables, "Export the report's tables; with --to csv");
  out.add_flag("--workers", given->workers, "Write a row for each role of a run");
  out.add_flag("--long", given->long_form, "Write a row for each measured value (CSV)");
  out.add_number("--width", given->width, "Width of plots in millimetres [150]").type_name("MM");
  out.add_option("--font", given->font, "Font of plots: sans, serif, mono, or for SVG any other [sans]")
      .type_name("NAME");
  out.add_flag("--no-titles", given->no_titles, "Leave out the titles of plots, for papers with captions");
  out.add_option("-o,--output", given->output, "File to write [standard output]; for tables and plots a folder")
      .type_name("FILE");
  out.footer(
      "Examples:\n"
      "  lockstep lab export study-3 -o study-3.csv          every run: settings and measurements\n"
      "  lockstep lab export study-3 --to latex -o tables    the report's tables, for booktabs\n"
      "  lockstep lab export study-3 --to pdf -o figures --width 85 --font serif --no-titles");
}

}  // namespace

void add_lab(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("lab", "Run experiments: many trainings, measurements and a report");
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
