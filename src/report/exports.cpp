#include "report/exports.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/defaults.h"
#include "report/figures.h"
#include "report/plots.h"
#include "report/tables.h"

namespace lockstep::report {

std::string_view ending(FileFormat format) {
  switch (format) {
    case FileFormat::csv:
      return "csv";
    case FileFormat::markdown:
      return "md";
    case FileFormat::latex:
      return "tex";
    case FileFormat::svg:
      return "svg";
    case FileFormat::pdf:
      break;
  }
  return "pdf";
}

std::vector<ExportFile> table_files(const lab::Results& results, FileFormat format) {
  const Material material(results);
  std::vector<ExportFile> files;
  const lab::ReportSpec spec = spec_of(results);
  const std::vector<std::string> ids = part_ids("table", names_of(spec.tables));
  for (size_t i = 0; i < ids.size(); ++i) {
    const Table table = table_of(material, spec.tables[i], ids[i]);
    std::string text = format == FileFormat::csv        ? table_csv(table)
                       : format == FileFormat::markdown ? table_markdown(table)
                                                        : table_latex(table);
    files.push_back({fmt::format("{}.{}", table.id, ending(format)), std::move(text)});
  }
  return files;
}

std::vector<ExportFile> plot_files(const lab::Results& results, FileFormat format, const chart::Look& look,
                                   std::vector<std::string>& notes) {
  const Material material(results);
  RunFolders folders;
  std::vector<ExportFile> files;
  const lab::ReportSpec spec = spec_of(results);
  const std::vector<std::string> ids = part_ids("plot", names_of(spec.plots));
  for (size_t i = 0; i < ids.size(); ++i) {
    const Plot plot = plot_of(material, folders, spec.plots[i], ids[i]);
    for (const chart::Chart& one : plot.charts) {
      files.push_back({fmt::format("{}.{}", one.id, ending(format)),
                       format == FileFormat::svg ? chart::drawn_as_svg(one, look) : chart::drawn_as_pdf(one, look)});
    }
    for (const std::string& note : plot.notes) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
  }
  return files;
}

}  // namespace lockstep::report
