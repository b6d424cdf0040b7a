// What is recorded of any role besides its results: TensorBoard's event file, what the process and its node use,
// figures for Prometheus. Nothing of it ends or disturbs the training: what cannot be written is said once. Threads of
// its own look and serve; an Observation is owned by one thread, `at_step` and `summaries` are for any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/traffic_meter.h"
#include "observe/metrics/metrics_server.h"
#include "observe/monitor/resource_monitor.h"
#include "observe/tensorboard/summary_writer.h"
#include "settings/settings.h"

namespace lockstep::run {

using ObserverLog = std::function<void(std::string_view level, const std::string& text)>;

/// Whose observation it is.
struct ObservedRole {
  std::string name = "local";  ///< "worker:1"
  std::string folder;          ///< of its files
  std::string subfolder;       ///< "worker-1", where `folder` is that of the run's; empty: it is the run's
  int position = 0;            ///< among the roles of the cluster: its metrics are served so many ports after the first
  /// The steps made before; nothing where only the first one tells, as of a member whose group is somewhere.
  std::optional<uint64_t> first_step = {};
  const base::TrafficMeter* traffic = nullptr;  ///< borrowed
  ObserverLog log;
  observe::MetricsServer::Figures figures = {};  ///< besides those of the monitor; called by any thread
};

class Observation {
 public:
  /// As the settings say.
  Observation(const settings::Settings& settings, ObservedRole role);

  /// The event file; null: none is wanted.
  [[nodiscard]] observe::SummaryWriter* summaries() { return summaries_ ? &*summaries_ : nullptr; }
  /// Training goes on after `step` steps: first, and whenever it goes back.
  void go_on_from(uint64_t step);
  /// The step that samples of the monitor belong to.
  void at_step(uint64_t step) { step_.store(static_cast<int64_t>(step), std::memory_order_relaxed); }
  /// Ends looking and gives what was seen; nothing without a monitor.
  std::optional<observe::ResourceSummary> stop();
  [[nodiscard]] const ObservedRole& role() const { return role_; }

 private:
  void on_sample(const observe::Sample& sample);
  /// The means since they were last written.
  void write_means(uint64_t step);
  void serve(const std::string& address);
  void warn(const std::string& text) const;
  [[nodiscard]] std::vector<observe::Metric> figures() const;

  ObservedRole role_;
  std::atomic<int64_t> step_ = -1;  ///< -1: not known yet
  std::optional<observe::SummaryWriter> summaries_;
  std::vector<std::string> tags_;      ///< of the monitor's columns
  std::atomic<bool> looking_ = false;  ///< tags_ are there
  struct Mean {
    double sum = 0;
    uint64_t count = 0;
  };
  std::vector<Mean> means_;    ///< of the columns; the monitor's thread
  double means_written_ = -1;  ///< when: seconds of a sample
  std::optional<observe::ResourceMonitor> monitor_;
  std::optional<observe::MetricsServer> metrics_;
};

/// Where the event files of a role lie.
std::string events_folder(const settings::Settings& settings, const ObservedRole& role);
/// Every how many steps; 0: never.
uint64_t summary_every(const settings::Settings& settings);

}  // namespace lockstep::run
