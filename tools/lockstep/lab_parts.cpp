// lockstep lab export: the tables and plots of a report.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "lab_commands.h"
#include "lockstep/error.h"
#include "report/exports.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using report::ExportFile;
using report::FileFormat;

bool is_plot_format(const std::string& to) { return to == "svg" || to == "pdf"; }
bool is_table_format(const std::string& to) { return to == "csv" || to == "markdown" || to == "latex"; }

void check(const LabLookArguments& arguments) {
  const bool plots = is_plot_format(arguments.to);
  if (arguments.tables && !is_table_format(arguments.to)) {
    throw UsageError(fmt::format("--tables: tables go to csv, markdown or latex, not to {}", arguments.to));
  }
  if (arguments.workers || arguments.long_form) {
    throw UsageError(fmt::format("--{}: is about runs; leave it out for {}", arguments.workers ? "workers" : "long",
                                 plots ? "plots" : "tables"));
  }
  if (!plots && (arguments.width != 0 || !arguments.font.empty() || arguments.no_titles)) {
    throw UsageError("--width, --font, --no-titles: are about plots; add --to svg or --to pdf");
  }
}

int write_files(const std::vector<ExportFile>& files, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(fmt::format("cannot create folder {}: {}", folder, error.message()));
  for (const ExportFile& file : files) {
    const std::string path = (fs::path(folder) / file.name).string();
    base::write_whole_file(path, file.text);
    terminal::print("{}\n", path);
  }
  return 0;
}

int export_tables(const lab::Results& results, const LabLookArguments& arguments) {
  const FileFormat format = arguments.to == "csv"        ? FileFormat::csv
                            : arguments.to == "markdown" ? FileFormat::markdown
                                                         : FileFormat::latex;
  const std::vector<ExportFile> files = report::table_files(results, format);
  if (files.empty()) throw UsageError("the report of this experiment has no tables");
  if (!arguments.output.empty()) return write_files(files, arguments.output);
  if (format == FileFormat::csv && files.size() > 1) {
    throw UsageError(fmt::format("-o: give a folder for the {} tables; one CSV file holds one table", files.size()));
  }
  for (size_t i = 0; i < files.size(); ++i) terminal::write_out((i == 0 ? "" : "\n") + files[i].text);
  return 0;
}

int export_plots(const lab::Results& results, const LabLookArguments& arguments) {
  if (arguments.output.empty()) throw UsageError("-o: give a folder for the plots");
  chart::Look look;
  if (arguments.width != 0) look.width_mm = static_cast<double>(arguments.width);
  if (!arguments.font.empty()) look.font = arguments.font;
  look.title = !arguments.no_titles;
  std::vector<std::string> notes;
  const FileFormat format = arguments.to == "svg" ? FileFormat::svg : FileFormat::pdf;
  const std::vector<ExportFile> files = report::plot_files(results, format, look, notes);
  for (const std::string& note : notes) terminal::print_note(terminal::Terminal::detect(), "note", note);
  if (files.empty()) throw UsageError("the report of this experiment has no plots with data");
  return write_files(files, arguments.output);
}

}  // namespace

bool wants_report_parts(const LabLookArguments& arguments) {
  const bool drawing = arguments.width != 0 || !arguments.font.empty() || arguments.no_titles;
  return arguments.tables || drawing || is_plot_format(arguments.to) || arguments.to == "markdown" ||
         arguments.to == "latex";
}

int export_report_parts(const lab::Results& results, const LabLookArguments& arguments) {
  check(arguments);
  return is_plot_format(arguments.to) ? export_plots(results, arguments) : export_tables(results, arguments);
}

}  // namespace lockstep::tools
