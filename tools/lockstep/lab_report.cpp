#include "lab_report.h"

#include <fmt/format.h>

#include "base/file.h"
#include "lab/database.h"
#include "lab_results.h"

namespace lockstep::tools {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '&':
        result += "&amp;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// A plain list of runs.
std::string page(const lab::Results& results) {
  std::string html = fmt::format("<!doctype html><meta charset=\"utf-8\"><title>{0}</title><h1>{0}</h1><ul>",
                                 escaped(results.experiment.title));
  for (const lab::RunResult& run : results.runs) {
    html += fmt::format("<li>{}: {}</li>", escaped(run.plan.key), escaped(result_text(run.measured.values)));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string write_report(const std::string& lab_dir, int64_t experiment, const std::string& path) {
  const lab::Database database(lab_dir, lab::Database::Access::read);
  base::write_whole_file(path, page(database.results(experiment)));
  return path;
}

}  // namespace lockstep::tools
