// Turns readings into samples: the names of the columns, and what they hold between two readings. The columns are those
// of the node as it is when the sampler is made; an interface that comes later counts in the sum alone. For one thread.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/traffic_meter.h"
#include "observe/monitor/gpu_reader.h"
#include "observe/monitor/node_reader.h"
#include "observe/monitor/process_reader.h"

namespace lockstep::observe {

/// Everything at one moment.
struct Reading {
  std::chrono::steady_clock::time_point when;
  ProcessTotals process;
  bool has_traffic = false;
  base::TrafficMeter::Totals traffic;
  NodeTotals node;
  std::vector<GpuReading> gpus;
};

/// The columns that every machine has; interfaces and GPUs have theirs besides.
std::span<const char* const> fixed_columns();

class Sampler {
 public:
  /// `first` says which interfaces and GPUs there are.
  explicit Sampler(Reading first);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// The values of the columns, over the time since the reading before; NaN: not to be had.
  const std::vector<double>& advance(Reading now);
  /// That time.
  [[nodiscard]] double interval() const { return interval_; }
  /// From the first reading to the latest.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(before_.when - begun_).count(); }

 private:
  void add_process(const Reading& now);
  void add_node(const Reading& now);
  void add_network(const Reading& now);
  void add_gpus(const Reading& now);
  void put(double value) { values_.push_back(value); }
  /// Per second; a total that went back counts as one that stayed.
  [[nodiscard]] double rate(double before, double now) const;

  Reading before_;
  std::chrono::steady_clock::time_point begun_;
  std::vector<std::string> interfaces_;  ///< with columns of their own
  std::vector<std::string> columns_;
  std::vector<double> values_;
  double interval_ = 0;
};

}  // namespace lockstep::observe
