// The CSV file of a monitor. It never throws: the first failure is reported once, and writing stops. For one thread.
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

  /// Appends to an existing file. If its columns differ (other network interfaces), writes "monitor-2.csv" and so on
  /// beside it. An empty path: no file.
  MonitorCsv(const std::string& path, const std::vector<std::string>& columns, Warn warn);

  void add(double time, double seconds, std::span<const double> values);
  /// Path of the file; empty: none.
  [[nodiscard]] std::string path() const { return file_ ? file_->path() : ""; }

 private:
  void give_up(const std::string& why);

  Warn warn_;
  std::optional<base::CsvFile> file_;
  std::string line_;
};

}  // namespace lockstep::observe
