#include "observe/monitor/monitor_csv.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

#include "lockstep/error.h"

namespace lockstep::observe {
namespace {

constexpr int kMostFiles = 100;

std::string numbered(const std::string& path, int number) {
  if (number == 1) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()))
      .string();
}

/// Appends a number; large ones are bytes, printed as whole numbers.
void append(std::string& line, double value) {
  constexpr double kLarge = 1e6;
  const auto out = std::back_inserter(line);
  std::abs(value) >= kLarge ? fmt::format_to(out, "{:.0f}", value) : fmt::format_to(out, "{:.7g}", value);
}

base::CsvFile open_csv(const std::string& path, const std::string& header) {
  for (int number = 1;; ++number) {
    try {
      return base::CsvFile::resume(numbered(path, number), header, std::numeric_limits<uint64_t>::max());
    } catch (const DataError&) {
      if (number == kMostFiles) throw;
    }
  }
}

}  // namespace

MonitorCsv::MonitorCsv(const std::string& path, const std::vector<std::string>& columns, Warn warn)
    : warn_(std::move(warn)) {
  if (path.empty()) return;
  std::string header = "time,seconds";
  for (const std::string& column : columns) header += "," + column;
  try {
    file_ = open_csv(path, header);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void MonitorCsv::add(double time, double seconds, std::span<const double> values) {
  if (!file_) return;
  try {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:.3f},{:.3f}", time, seconds);
    for (const double value : values) {
      line_ += ',';
      if (std::isfinite(value)) append(line_, value);
    }
    file_->add(line_);
    file_->flush();
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void MonitorCsv::give_up(const std::string& why) {
  file_.reset();
  if (warn_) warn_(why + "; resources are not recorded from here on");
}

}  // namespace lockstep::observe
