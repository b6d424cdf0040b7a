// Logs of other monitors: dstat's (also dool's) CSV files and collectl's plot format, turned into the columns of our
// own monitor.csv (docs/monitor.md). Strict: lines, cells and samples have limits, and time never goes back. Free
// functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::guest {

struct UsageLog {
  std::string tool;                       ///< "dstat" or "collectl"
  std::string host;                       ///< as the log says; empty: it does not
  std::vector<std::string> columns;       ///< of monitor.csv, without time and seconds
  std::vector<double> times;              ///< seconds since 1970; dstat's logs may not know the year
  std::vector<std::vector<double>> rows;  ///< values by column
};

inline constexpr uint64_t kLargestLog = uint64_t{1} << 28;
inline constexpr size_t kMostSamples = 1'000'000;

/// Reads a log. dstat's first sample is left out: it is the mean since the machine started. `every`: seconds between
/// samples of a log without times; 0: not known, and such a log is refused. Throws DataError "FILE:LINE: ...".
UsageLog parse_usage_log(std::string_view text, const std::string& file, double every = 0);
UsageLog read_usage_log(const std::string& file, double every = 0);

/// Returns the log as the text of a monitor.csv.
std::string monitor_csv(const UsageLog& log);

}  // namespace lockstep::guest
