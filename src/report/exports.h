// The tables and plots of a report as files, for papers and other programs. Free functions; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chart/drawing.h"
#include "lab/results.h"

namespace lockstep::report {

enum class FileFormat : uint8_t { csv, markdown, latex, svg, pdf };
/// Returns the end of a file's name: "csv", "md", "tex", "svg", "pdf".
std::string_view ending(FileFormat format);

struct ExportFile {
  std::string name;  ///< "table-nodes.tex", "plot-epoch-1.pdf"
  std::string text;
};

/// Returns a file for each table.
std::vector<ExportFile> table_files(const lab::Results& results, FileFormat format);

/// Returns a file for each chart, and in `notes` why plots or parts of them could not be drawn. Throws UsageError for a
/// width or font that cannot be used.
std::vector<ExportFile> plot_files(const lab::Results& results, FileFormat format, const chart::Look& look,
                                   std::vector<std::string>& notes);

}  // namespace lockstep::report
