// Records the resources that a process and its node use: CPU, memory, network, disk, GPUs. A ResourceMonitor takes
// samples at an interval on its own thread, writes each as a line to a CSV file and keeps averages, peaks and
// percentiles. After construction it never throws and never disturbs the process: a failure to write is reported once
// (`warn`).
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

/// One sample. Rates are averages since the previous sample. The names are the CSV's columns.
struct Sample {
  double time = 0;             ///< seconds since 1970
  double seconds = 0;          ///< seconds since the monitor began
  std::vector<double> values;  ///< values by column; NaN: not available
};

/// The statistics of a column over all samples.
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
  std::string csv_file;                         ///< empty: none; an existing file is continued
  pid_t pid = 0;                                ///< process to watch; 0: this one
  bool descendants = false;                     ///< include its descendants
  const base::TrafficMeter* traffic = nullptr;  ///< bytes that the process exchanges with other roles; borrowed
  std::function<void(const Sample& sample)> on_sample = {};  ///< called on the monitor's thread
  std::function<void(const std::string& text)> warn = {};
};

class ResourceMonitor {
 public:
  /// Starts at once.
  explicit ResourceMonitor(MonitorOptions options);
  ~ResourceMonitor();
  ResourceMonitor(const ResourceMonitor&) = delete;
  ResourceMonitor& operator=(const ResourceMonitor&) = delete;

  /// Names of Sample::values.
  [[nodiscard]] const std::vector<std::string>& columns() const;
  /// Returns the summary of all samples so far; any thread.
  [[nodiscard]] ResourceSummary summary() const;
  [[nodiscard]] Sample latest() const;
  /// Takes a last sample and ends.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::observe
