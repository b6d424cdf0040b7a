// The observation of any role besides its results: TensorBoard's event file, resources used by the process and its
// node, figures for Prometheus. It never ends or disturbs the training: a failure to write is reported once. Observing
// and serving have their own threads; an Observation is owned by one thread, `at_step` and `summaries` are for any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/traffic_meter.h"
#include "observe/metrics/metrics_server.h"
#include "observe/monitor/resource_monitor.h"
#include "observe/tensorboard/summary_writer.h"
#include "settings/settings.h"

namespace lockstep::run {

using ObserverLog = std::function<void(std::string_view level, const std::string& text)>;

/// The observed role.
struct ObservedRole {
  std::string name = "local";  ///< "worker:1"
  std::string folder;          ///< folder of its files
  std::string subfolder;       ///< "worker-1" if `folder` is that subfolder of the run's; empty if it is the run's
  int position = 0;            ///< position among the cluster's roles, added to the port of its metrics
  /// Number of steps made before; absent until the first step, for a member that joins a running group.
  std::optional<uint64_t> first_step = {};
  const base::TrafficMeter* traffic = nullptr;  ///< borrowed
  ObserverLog log;
  observe::MetricsServer::Figures figures = {};  ///< figures besides those of the monitor; called by any thread
};

class Observation {
 public:
  /// Observes as the settings say.
  Observation(const settings::Settings& settings, ObservedRole role);

  /// The event file; null if not wanted.
  [[nodiscard]] observe::SummaryWriter* summaries() { return summaries_ ? &*summaries_ : nullptr; }
  /// Continues after `step` steps. Called at the start, and whenever training goes back.
  void go_on_from(uint64_t step);
  /// Sets the step that samples of the monitor belong to.
  void at_step(uint64_t step) { step_.store(static_cast<int64_t>(step), std::memory_order_relaxed); }
  /// Stops observing and returns the resource summary; nothing without a monitor.
  std::optional<observe::ResourceSummary> stop();
  [[nodiscard]] const ObservedRole& role() const { return role_; }

 private:
  void on_sample(const observe::Sample& sample);
  /// Writes the means since the last write.
  void write_means(uint64_t step);
  void serve(const std::string& address);
  void warn(const std::string& text) const;
  [[nodiscard]] std::vector<observe::Metric> figures() const;

  ObservedRole role_;
  std::atomic<int64_t> step_ = -1;  ///< -1: not yet known
  std::optional<observe::SummaryWriter> summaries_;
  std::vector<std::string> tags_;      ///< names of the monitor's columns
  std::atomic<bool> looking_ = false;  ///< tags_ is set
  struct Mean {
    double sum = 0;
    uint64_t count = 0;
  };
  std::vector<Mean> means_;                                  ///< means of the columns; used by the monitor's thread
  std::vector<std::pair<std::string, std::string>> labels_;  ///< of every figure that is served
  double means_written_ = -1;                                ///< seconds of the sample at the last write
  std::optional<observe::ResourceMonitor> monitor_;
  std::optional<observe::MetricsServer> metrics_;
};

/// Returns the folder of a role's event files.
std::string events_folder(const settings::Settings& settings, const ObservedRole& role);
/// Returns the interval of summaries in steps; 0: never.
uint64_t summary_every(const settings::Settings& settings);

}  // namespace lockstep::run
