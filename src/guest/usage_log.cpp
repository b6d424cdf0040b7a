#include "guest/usage_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/yaml_tree.h"
#include "guest/csv_columns.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

constexpr double kUnknownValue = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kLongestLine = 64 * 1024;
using Cells = std::vector<std::string>;

/// A column of monitor.csv as a sum of columns of the log, times a factor.
struct Sum {
  std::string_view column;
  std::vector<std::string_view> parts;
  double factor = 1;
};

/// Columns of dstat are "GROUP/NAME" here.
const std::vector<Sum>& dstat_sums() {
  static const std::vector<Sum> sums{
      {"node_cpu_percent",
       {"total cpu usage/usr", "total cpu usage/sys", "total cpu usage/hiq", "total cpu usage/siq"}},
      {"node_user_percent", {"total cpu usage/usr"}},
      {"node_system_percent", {"total cpu usage/sys", "total cpu usage/hiq", "total cpu usage/siq"}},
      {"node_iowait_percent", {"total cpu usage/wai"}},
      {"node_steal_percent", {"total cpu usage/stl"}},
      {"node_memory_used", {"memory usage/used"}},
      {"node_context_switches", {"system/csw"}},
      {"node_disk_read", {"dsk/total/read"}},
      {"node_disk_written", {"dsk/total/writ"}},
      {"lo_received", {"net/lo/recv"}},
      {"lo_sent", {"net/lo/send"}},
      {"net_received", {"net/total/recv"}},
      {"net_sent", {"net/total/send"}},
      {"net_packets_received", {"pkt/total/#recv"}},
      {"net_packets_sent", {"pkt/total/#send"}}};
  return sums;
}

const std::vector<Sum>& collectl_sums() {
  constexpr double kKilo = 1024;
  static const std::vector<Sum> sums{
      {"node_cpu_percent", {"[CPU]User%", "[CPU]Nice%", "[CPU]Sys%", "[CPU]Irq%", "[CPU]Soft%"}},
      {"node_user_percent", {"[CPU]User%", "[CPU]Nice%"}},
      {"node_system_percent", {"[CPU]Sys%", "[CPU]Irq%", "[CPU]Soft%"}},
      {"node_iowait_percent", {"[CPU]Wait%"}},
      {"node_steal_percent", {"[CPU]Steal%"}},
      {"node_memory_used", {"[MEM]Used"}, kKilo},
      {"node_context_switches", {"[CPU]Ctx/sec"}},
      {"node_disk_read", {"[DSK]ReadKBTot"}, kKilo},
      {"node_disk_written", {"[DSK]WriteKBTot"}, kKilo},
      {"net_received", {"[NET]RxKBTot"}, kKilo},
      {"net_sent", {"[NET]TxKBTot"}, kKilo},
      {"net_packets_received", {"[NET]RxPktTot"}},
      {"net_packets_sent", {"[NET]TxPktTot"}}};
  return sums;
}

double number_of_cell(std::string_view text, std::string_view column) {
  if (text.empty()) return kUnknownValue;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(value) || value < 0) {
    throw DataError(fmt::format("{}: '{}' is not a number of at least 0", base::shown(column), base::shown(text)));
  }
  return value;
}

int whole_at(std::string_view text, size_t at, size_t digits) {
  int value = -1;
  if (at + digits > text.size()) return -1;
  const char* begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + digits, value);
  return error == std::errc() && end == begin + digits ? value : -1;
}

/// Returns the seconds of "10:00:01" or "10:00:01.500"; NaN if it is not a time of day.
double time_of_day(std::string_view text) {
  const int hours = whole_at(text, 0, 2);
  const int minutes = whole_at(text, 3, 2);
  const bool form = text.size() >= 8 && text[2] == ':' && text[5] == ':';
  if (!form || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return kUnknownValue;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data() + 6, text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds < 61)) return kUnknownValue;
  return hours * 3600 + minutes * 60 + seconds;
}

/// Returns the seconds since 1970 of a day and a time of day, both in UTC; NaN for an impossible day.
double moment(int year, int month, int day, double seconds) {
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31) return kUnknownValue;
  std::tm date{};
  date.tm_year = year - 1900;
  date.tm_mon = month - 1;
  date.tm_mday = day;
  return static_cast<double>(::timegm(&date)) + seconds;
}

int month_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto* const found = std::find(kMonths.begin(), kMonths.end(), name);
  return found == kMonths.end() ? 0 : static_cast<int>(found - kMonths.begin()) + 1;
}

/// Reads dstat's "19-11 15:21:22", or dool's "Nov-19 15:21:22". The log's head has the year.
double dstat_time(std::string_view text, int year) {
  const size_t blank = text.find(' ');
  const size_t dash = text.find('-');
  if (blank == std::string_view::npos || dash == std::string_view::npos || dash > blank) return kUnknownValue;
  const double seconds = time_of_day(text.substr(blank + 1));
  const int named = month_of(text.substr(0, dash));
  const int first = whole_at(text, 0, dash);
  const int second = whole_at(text, dash + 1, blank - dash - 1);
  return named > 0 ? moment(year, named, second, seconds) : moment(year, second, first, seconds);
}

/// The lines of a file with their numbers; the last one may be cut off.
class Lines {
 public:
  Lines(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool next() {
    if (text_.empty()) return false;
    ++number_;
    const size_t end = text_.find('\n');
    whole_ = end != std::string_view::npos;
    line_ = text_.substr(0, end);
    text_.remove_prefix(whole_ ? end + 1 : text_.size());
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (line_.size() > kLongestLine) fail(fmt::format("has more than {} characters", kLongestLine));
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] bool whole() const { return whole_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", file_, number_, what));
  }
  /// Calls with this line as the place of its errors.
  template <class F>
  auto at(const F& call) const {
    try {
      return call();
    } catch (const DataError& error) {
      fail(error.what());
    }
  }

 private:
  std::string_view text_;
  std::string file_;
  std::string_view line_;
  size_t number_ = 0;
  bool whole_ = true;
};

/// The samples of a log as they are read.
class Samples {
 public:
  Samples(UsageLog& log, const std::vector<Sum>& sums, const Cells& names) : log_(log), names_(names) {
    for (const Sum& sum : sums) {
      std::vector<size_t> places;
      for (const std::string_view part : sum.parts) {
        const auto found = std::find(names.begin(), names.end(), part);
        if (found != names.end()) places.push_back(static_cast<size_t>(found - names.begin()));
      }
      // The first part must be there: a sum of the rest would say too little.
      if (places.empty() || names[places.front()] != sum.parts.front()) continue;
      log_.columns.emplace_back(sum.column);
      places_.emplace_back(std::move(places), sum.factor);
    }
  }

  [[nodiscard]] bool any() const { return !places_.empty(); }

  void add(double time, const Cells& cells) {
    if (std::isnan(time)) throw DataError("its time is not one");
    if (!log_.times.empty() && time < log_.times.back()) throw DataError("its time is before that of the line before");
    if (log_.times.size() == kMostSamples) throw DataError(fmt::format("has more than {} samples", kMostSamples));
    std::vector<double> values;
    for (const auto& [places, factor] : places_) {
      double sum = 0;
      for (const size_t place : places) sum += number_of_cell(cells[place], names_[place]);
      values.push_back(sum * factor);
    }
    log_.times.push_back(time);
    log_.rows.push_back(std::move(values));
  }

 private:
  UsageLog& log_;
  const Cells& names_;
  std::vector<std::pair<std::vector<size_t>, double>> places_;
};

size_t place_of(const Cells& names, std::initializer_list<std::string_view> wanted) {
  for (const std::string_view name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  return names.size();
}

void check_cells(const Cells& cells, const Cells& names) {
  if (cells.size() == names.size()) return;
  throw DataError(fmt::format("has {} cells, but the names above have {}", cells.size(), names.size()));
}

/// The head of a dstat log: host, year and the names of the columns.
struct DstatHead {
  std::string host;
  int year = 1970;
  Cells names;
};

DstatHead read_dstat_head(Lines& lines) {
  DstatHead head;
  Cells groups;
  while (lines.next()) {
    if (lines.line().empty()) continue;
    const Cells cells = lines.at([&] { return split_csv(lines.line()); });
    const bool named = cells.size() > 1 && cells.front().ends_with(':');
    if (cells.front() == "Host:" && cells.size() > 1) head.host = cells[1];
    for (size_t i = 0; named && i + 1 < cells.size(); ++i) {
      // "19 Nov 2026 15:21:22 UTC"
      const int year = cells[i] == "Date:" && cells[i + 1].size() > 11 ? whole_at(cells[i + 1], 7, 4) : 0;
      if (year >= 1970) head.year = year;
    }
    if (named) continue;
    if (groups.empty()) {
      groups = cells;
      continue;
    }
    if (cells.size() != groups.size()) lines.fail("has other columns than the names of groups above");
    std::string group;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!groups[i].empty()) group = groups[i];
      head.names.push_back(group + "/" + cells[i]);
    }
    return head;
  }
  lines.fail("a dstat log ends before the names of its columns");
}

/// Times of samples: of the log, or every so many seconds.
using TimeOf = std::function<double(const Cells& cells, size_t sample)>;

TimeOf dstat_times(const DstatHead& head, double every, const Lines& lines) {
  const size_t epoch = place_of(head.names, {"epoch/epoch", "system/epoch"});
  const size_t time = place_of(head.names, {"system/time", "time/time"});
  if (epoch < head.names.size()) {
    return [epoch](const Cells& cells, size_t) { return number_of_cell(cells[epoch], "epoch"); };
  }
  if (time < head.names.size()) {
    return [time, year = head.year](const Cells& cells, size_t) { return dstat_time(cells[time], year); };
  }
  if (!(every > 0)) lines.fail("the log has no times (dstat -t or -T); say how many seconds lie between its samples");
  return [every](const Cells&, size_t sample) { return every * static_cast<double>(sample); };
}

UsageLog read_dstat(Lines& lines, double every) {
  const DstatHead head = read_dstat_head(lines);
  UsageLog log{"dstat", head.host, {}, {}, {}};
  Samples samples(log, dstat_sums(), head.names);
  if (!samples.any()) lines.fail("the log has no column of CPU, memory, network or disks (dstat -cmnd)");
  const TimeOf time_of = dstat_times(head, every, lines);
  size_t sample = 0;
  while (lines.next()) {
    if (lines.line().empty()) continue;
    lines.at([&] {
      const Cells cells = split_csv(lines.line());
      if (!lines.whole() && cells.size() != head.names.size()) return;  // still being written
      check_cells(cells, head.names);
      if (sample++ > 0) samples.add(time_of(cells, sample), cells);
    });
  }
  return log;
}

Cells split_at(std::string_view line, char separator) {
  Cells cells;
  while (!line.empty()) {
    const size_t end = std::min(line.find(separator), line.size());
    if (end > 0 || separator != ' ') cells.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    if (cells.size() > kMostCells) throw DataError(fmt::format("has more than {} cells", kMostCells));
  }
  return cells;
}

/// Reads "20261119 15:21:22", or seconds since 1970.
double collectl_time(const Cells& cells, bool utc) {
  if (utc) return number_of_cell(cells[0], "UTC");
  const std::string& day = cells[0];
  if (day.size() != 8) return kUnknownValue;
  return moment(whole_at(day, 0, 4), whole_at(day, 4, 2), whole_at(day, 6, 2), time_of_day(cells[1]));
}

UsageLog read_collectl(Lines& lines) {
  UsageLog log{"collectl", "", {}, {}, {}};
  Cells names;
  std::optional<Samples> samples;
  char separator = ' ';
  bool utc = false;
  do {
    const std::string_view line = lines.line();
    if (line.starts_with("# Host:")) {
      const Cells words = lines.at([&] { return split_at(line, ' '); });
      if (words.size() > 2) log.host = words[2];
    }
    const bool head = line.starts_with("#Date") || line.starts_with("#UTC");
    if (line.empty() || (line.starts_with('#') && (!head || samples))) continue;
    if (head) {
      utc = line.starts_with("#UTC");
      const size_t end = utc ? 4 : 5;
      separator = line.size() > end ? line[end] : ' ';
      names = lines.at([&] { return split_at(line.substr(1), separator); });
      samples.emplace(log, collectl_sums(), names);
      if (!samples->any()) lines.fail("the log has no column of CPU, memory, network or disks (collectl -scmnd)");
      continue;
    }
    if (!samples) lines.fail("a collectl log in plot format (-P) has a line '#Date Time ...' before its samples");
    lines.at([&] {
      const Cells cells = split_at(line, separator);
      if (!lines.whole() && cells.size() != names.size()) return;
      check_cells(cells, names);
      if (utc || names.size() > 2) samples->add(collectl_time(cells, utc), cells);
    });
  } while (lines.next());
  return log;
}

}  // namespace

UsageLog parse_usage_log(std::string_view text, const std::string& file, double every) {
  Lines lines(text, file);
  bool there = lines.next();
  while (there && lines.line().empty()) there = lines.next();
  if (!there) throw DataError(file + ": is empty");
  const std::string_view first = lines.line();
  UsageLog log;
  if (first.find("CSV output") != std::string_view::npos) {
    log = read_dstat(lines, every);
  } else if (first.starts_with('#')) {
    log = read_collectl(lines);
  } else {
    lines.fail("is neither a CSV file of dstat (--output) nor a log of collectl in plot format (-P)");
  }
  if (log.rows.empty()) throw DataError(file + ": has no samples");
  return log;
}

UsageLog read_usage_log(const std::string& file, double every) {
  const std::vector<uint8_t> bytes = base::read_file(file, kLargestLog);
  return parse_usage_log({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, every);
}

std::string monitor_csv(const UsageLog& log) {
  std::string text = "time,seconds";
  for (const std::string& column : log.columns) text += "," + column;
  text += '\n';
  for (size_t i = 0; i < log.rows.size(); ++i) {
    text += fmt::format("{:.3f},{:.3f}", log.times[i], log.times[i] - log.times.front());
    for (const double value : log.rows[i]) text += std::isnan(value) ? "," : fmt::format(",{}", value);
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::guest
