// The CSV file of a monitor. It never throws: what fails is said once, and from then on nothing is written. For one
// thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/csv_file.h"

namespace lockstep::observe {

class MonitorCsv {
 public:
  using Warn = std::function<void(const std::string& text)>;

  /// A file that is there is gone on with; where its columns are others (other interfaces), "monitor-2.csv" and so on
  /// beside it is. An empty path: none.
  MonitorCsv(const std::string& path, const std::vector<std::string>& columns, Warn warn);

  void add(double time, double seconds, std::span<const double> values);
  /// Where it is; empty: nowhere.
  [[nodiscard]] std::string path() const { return file_ ? file_->path() : ""; }

 private:
  void give_up(const std::string& why);

  Warn warn_;
  std::optional<base::CsvFile> file_;
  std::string line_;
};

}  // namespace lockstep::observe
