#include "lab_report.h"

#include "base/file.h"
#include "lab/database.h"
#include "report/report.h"

namespace lockstep::tools {

std::string write_report(const std::string& lab_dir, int64_t experiment, const std::string& path) {
  const lab::Database database(lab_dir, lab::Database::Access::read);
  base::write_whole_file(path, report::html(database.results(experiment)));
  return path;
}

}  // namespace lockstep::tools
