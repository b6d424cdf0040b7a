// What a process and its node use: CPU, memory, network, disk, GPUs. A ResourceMonitor looks every so often on a thread
// of its own, writes a line to a CSV file and keeps averages, peaks and percentiles. It never throws after construction
// and never disturbs what it watches: a file that cannot be written is said once (`warn`) and left alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/traffic_meter.h"

namespace lockstep::observe {

/// One look. Rates are over the time since the look before. The names are the CSV's columns.
struct Sample {
  double time = 0;             ///< seconds since 1970
  double seconds = 0;          ///< since the monitor began
  std::vector<double> values;  ///< by column; NaN: not to be had
};

/// A column over all samples.
struct ColumnSummary {
  std::string name;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double max = 0;
};

struct ResourceSummary {
  std::string host;
  double every = 0;
  uint64_t samples = 0;
  std::vector<ColumnSummary> columns;
};

struct MonitorOptions {
  std::chrono::duration<double> every{0.5};
  std::string csv_file;                                      ///< empty: none; one that is there is gone on with
  pid_t pid = 0;                                             ///< whose process; 0: this one
  bool descendants = false;                                  ///< its children and theirs, too
  const base::TrafficMeter* traffic = nullptr;               ///< what the process sends to other roles; borrowed
  std::function<void(const Sample& sample)> on_sample = {};  ///< on the monitor's thread
  std::function<void(const std::string& text)> warn = {};
};

class ResourceMonitor {
 public:
  /// Begins at once.
  explicit ResourceMonitor(MonitorOptions options);
  ~ResourceMonitor();
  ResourceMonitor(const ResourceMonitor&) = delete;
  ResourceMonitor& operator=(const ResourceMonitor&) = delete;

  /// Names of Sample::values.
  [[nodiscard]] const std::vector<std::string>& columns() const;
  /// Of all samples so far; any thread.
  [[nodiscard]] ResourceSummary summary() const;
  [[nodiscard]] Sample latest() const;
  /// Takes a last sample and ends.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::observe
