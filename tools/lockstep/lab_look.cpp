// lockstep lab list, show, report, export.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lab/database.h"
#include "lab/measure_again.h"
#include "lab_commands.h"
#include "lab_findings.h"
#include "lab_report.h"
#include "lab_results.h"
#include "lockstep/error.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using lab::Database;

std::string called(const lab::ExperimentRow& row) { return row.scale.empty() ? row.name : row.name + "-" + row.scale; }

/// Writes to a file as a whole, or to standard output.
int give(const std::string& text, const std::string& path) {
  if (path.empty() || path == "-") {
    terminal::write_out(text);
  } else {
    base::write_whole_file(path, text);
    terminal::print("{}\n", path);
  }
  return 0;
}

}  // namespace

void print_findings(const lab::Results& results) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const std::string text = findings_text(terminal, results, terminal::Terminal::width());
  if (!text.empty()) terminal::print("\n{}\n{}", terminal.bold("findings"), text);
}

int lab_list(const LabLookArguments& arguments) {
  const Database database(arguments.lab_dir, Database::Access::read);
  const std::vector<lab::ExperimentRow> rows = database.experiments();
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const lab::ExperimentRow& row : rows) {
      list.push_back({{"name", row.name},
                      {"scale", row.scale},
                      {"title", row.title},
                      {"folder", row.folder},
                      {"started", row.started},
                      {"ended", row.ended},
                      {"planned", row.planned},
                      {"running", row.running},
                      {"done", row.done},
                      {"failed", row.failed}});
    }
    terminal::print("{}\n", list.dump(2));
    return 0;
  }
  constexpr auto kRight = terminal::Table::Align::right;
  terminal::Table table(
      {{"experiment"}, {"title"}, {"runs", kRight}, {"done", kRight}, {"failed", kRight}, {"left", kRight}});
  for (const lab::ExperimentRow& row : rows) {
    const int all = row.planned + row.running + row.done + row.failed;
    const auto shown = [](int count) { return count == 0 ? std::string() : std::to_string(count); };
    table.add({called(row), row.title, std::to_string(all), std::to_string(row.done), shown(row.failed),
               shown(row.planned + row.running)});
  }
  table.drop_empty_columns();
  terminal::write_out(table.text(terminal::Terminal::detect()));
  return 0;
}

int lab_show(const LabLookArguments& arguments) {
  const Database database(arguments.lab_dir, Database::Access::read);
  const lab::Results results = database.results(database.find(arguments.name, arguments.scale).id);
  if (arguments.json) {
    terminal::write_out(results_json(results, true));
  } else {
    print_results(results);
    print_findings(results);
  }
  return 0;
}

int lab_report(const LabLookArguments& arguments) {
  const lab::ExperimentRow row =
      Database(arguments.lab_dir, Database::Access::read).find(arguments.name, arguments.scale);
  if (arguments.measure) {
    const lab::MeasuredAgain again = lab::measure_again(arguments.lab_dir, row.id);
    std::string text = fmt::format("{} runs measured again", again.runs);
    if (again.kept > 0) text += fmt::format("; {} keep their figures: their folders cannot be read", again.kept);
    terminal::print("{}\n", text);
  }
  const std::string path = arguments.output.empty() ? row.folder + "/report.html" : arguments.output;
  terminal::print("{}\n", write_report(arguments.lab_dir, row.id, path));
  return 0;
}

int lab_export(const LabLookArguments& arguments) {
  if (wants_report_parts(arguments)) {
    const Database database(arguments.lab_dir, Database::Access::read);
    return export_report_parts(database.results(database.find(arguments.name, arguments.scale).id), arguments);
  }
  if (arguments.to != "csv" && arguments.to != "json") {
    throw UsageError(
        fmt::format("--to: '{}' is not allowed; it takes csv, json, markdown, latex, svg or pdf", arguments.to));
  }
  if (arguments.long_form && (arguments.workers || arguments.to == "json")) {
    throw UsageError("--long: writes every value of every role as a CSV row; leave out --workers and --to json");
  }
  const Database database(arguments.lab_dir, Database::Access::read);
  const lab::Results results = database.results(database.find(arguments.name, arguments.scale).id);
  if (arguments.long_form) return give(long_csv(results), arguments.output);
  if (arguments.to == "json") return give(results_json(results, arguments.workers), arguments.output);
  return give(results_csv(results, arguments.workers), arguments.output);
}

}  // namespace lockstep::tools
