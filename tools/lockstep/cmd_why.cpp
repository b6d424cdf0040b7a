// lockstep why: what limited a run, and its cost against another run.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "command_line.h"
#include "display/run_tables.h"
#include "records/format.h"
#include "records/why.h"
#include "run_choice.h"
#include "run_json.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

struct WhyArguments {
  std::string run;
  std::string against;
  std::string runs_dir = "runs";
  bool json = false;
};

/// Joins sentences into one paragraph.
std::string paragraph(const std::vector<std::string>& sentences, size_t width) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : " ") + sentence;
  return wrapped_text(text, width);
}

std::string evidence_table(const terminal::Terminal& terminal, const std::vector<records::Evidence>& evidence,
                           size_t width) {
  if (evidence.empty()) return "";
  terminal::Table table({{"evidence"}, {"", terminal::Table::Align::right}});
  std::string remarks;
  for (const records::Evidence& row : evidence) {
    if (row.text.empty()) {
      remarks += wrapped_text(row.what, width);
    } else {
      table.add({row.what, row.text});
    }
  }
  return "\n" + table.text(terminal) + remarks;
}

std::string comparison_text(const terminal::Terminal& terminal, const records::RunRecord& run,
                            const records::RunRecord& baseline, const records::Comparison& comparison, size_t width) {
  std::string result = fmt::format(
      "\n{}{}\n{}", wrapped_text("against " + terminal.bold(baseline.name) + "  " + what_run(baseline), width),
      wrapped_text(terminal.bold(comparison.headline), width), paragraph(comparison.sentences, width));
  if (comparison.phases.empty()) return result;
  constexpr auto kRight = terminal::Table::Align::right;
  terminal::Table table({{"worker's time per example"}, {baseline.name, kRight}, {run.name, kRight}, {"more", kRight}});
  for (const records::PhaseCost& cost : comparison.phases) {
    const double more = cost.now - cost.before;
    table.add({display::phase_name(cost.phase), records::time_text(cost.before), records::time_text(cost.now),
               (more < 0 ? "-" : "+") + records::time_text(std::abs(more))});
  }
  return result + "\n" + table.text(terminal, std::max<size_t>(width, 60), 1);
}

int run_why(const WhyArguments& arguments) {
  const records::RunRecord run = choose_run(arguments.run, arguments.runs_dir);
  const records::Diagnosis diagnosis = records::diagnose(run);
  std::optional<records::RunRecord> baseline;
  std::optional<records::Comparison> comparison;
  if (!arguments.against.empty()) {
    baseline = choose_run(arguments.against, arguments.runs_dir);
    comparison = records::compare(run, *baseline);
  }
  if (arguments.json) {
    terminal::write_out(why_json(run, diagnosis, comparison));
    return 0;
  }
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const size_t width = terminal::Terminal::width();
  terminal::print("{}\n{}\n{}", title_line(terminal, run, width),
                  wrapped_text(terminal.bold(diagnosis.headline), width), paragraph(diagnosis.sentences, width));
  terminal::write_out(evidence_table(terminal, diagnosis.evidence, width));
  if (!diagnosis.suggestions.empty()) terminal::print("\n{}\n", terminal.bold("to try"));
  for (const std::string& suggestion : diagnosis.suggestions)
    terminal::write_out(wrapped_text(suggestion, width, "  "));
  if (comparison) terminal::write_out(comparison_text(terminal, run, *baseline, *comparison, width));
  const std::string warnings = warning_lines(terminal, run) + (baseline ? warning_lines(terminal, *baseline) : "");
  if (!warnings.empty()) terminal::print("\n{}", warnings);
  return 0;
}

}  // namespace

void add_why(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("why", "Explain what limited a run, in a few sentences with numbers");
  const auto arguments = std::make_shared<WhyArguments>();
  app.add_option("RUN", arguments->run, "A run's folder or name [the newest run]");
  app.add_option("--against", arguments->against, "Baseline run: adds speed-up and where the lost time went")
      .type_name("RUN");
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "Examples:\n"
      "  lockstep why                             the newest run\n"
      "  lockstep why lenet-2 --against lenet-1   the cost of distribution");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return run_why(*arguments); }; });
}

}  // namespace lockstep::tools
