// Turns readings into samples: the names of the columns, and their values between two readings. The columns are those
// of the node when the sampler is made; an interface that appears later counts only in the sum. For one thread.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/traffic_meter.h"
#include "observe/monitor/gpu_reader.h"
#include "observe/monitor/node_reader.h"
#include "observe/monitor/process_reader.h"

namespace lockstep::observe {

/// All readings of one moment.
struct Reading {
  std::chrono::steady_clock::time_point when;
  ProcessTotals process;
  bool has_traffic = false;
  base::TrafficMeter::Totals traffic;
  NodeTotals node;
  std::vector<GpuReading> gpus;
};

/// Returns the columns that every machine has; interfaces and GPUs add theirs.
std::span<const char* const> fixed_columns();
/// Returns what a column holds, in a few words.
std::string column_help(std::string_view column);

class Sampler {
 public:
  /// The interfaces and GPUs in `first` get columns.
  explicit Sampler(Reading first);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Returns the values of the columns, averaged since the previous reading; NaN: not available.
  const std::vector<double>& advance(Reading now);
  /// Seconds between the last two readings.
  [[nodiscard]] double interval() const { return interval_; }
  /// Seconds from the first reading to the latest.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(before_.when - begun_).count(); }

 private:
  void add_process(const Reading& now);
  void add_node(const Reading& now);
  void add_network(const Reading& now);
  void add_gpus(const Reading& now);
  void put(double value) { values_.push_back(value); }
  /// Returns the rate per second; 0 if the total decreased.
  [[nodiscard]] double rate(double before, double now) const;

  Reading before_;
  std::chrono::steady_clock::time_point begun_;
  std::vector<std::string> interfaces_;  ///< interfaces with their own columns
  std::vector<std::string> columns_;
  std::vector<double> values_;
  double interval_ = 0;
};

}  // namespace lockstep::observe
