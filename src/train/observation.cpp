#include "train/observation.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cluster/spec.h"
#include "lockstep/error.h"

namespace lockstep::train {
namespace {

cluster::Address metrics_place(const std::string& text) {
  try {
    return cluster::parse_address(text);
  } catch (const UsageError& error) {
    throw UsageError(std::string("metrics: ") + error.what());
  }
}

}  // namespace

uint64_t summary_every(const Settings& settings) {
  return settings.summary_every == "never" ? 0 : std::stoull(settings.summary_every);
}

Observation::Observation(const Settings& settings, ObservedRole role)
    : role_(std::move(role)), step_(role_.first_step) {
  const auto warn = [this](const std::string& text) {
    if (role_.log) role_.log("warning", text);
  };
  if (summary_every(settings) > 0) {
    const std::string folder = events_folder(settings, role_);
    std::error_code ignored;  // the writer finds it missing and says so
    std::filesystem::create_directories(folder, ignored);
    summaries_.emplace(folder, role_.first_step, warn);
  }
  const std::string address = metrics_address(settings, role_.position);
  if (settings.monitor_every > 0) {
    observe::MonitorOptions options;
    options.every = std::chrono::duration<double>(settings.monitor_every);
    options.csv_file = role_.folder + "/monitor.csv";
    options.traffic = role_.traffic;
    options.on_sample = [this](const observe::Sample& sample) { on_sample(sample); };
    options.warn = warn;
    monitor_.emplace(std::move(options));
    for (const std::string& column : monitor_->columns()) tags_.push_back("monitor/" + column);
    looking_.store(true, std::memory_order_release);
  }
  if (!address.empty()) metrics_.emplace(address, [this] { return figures(); });
}

void Observation::on_sample(const observe::Sample& sample) {
  if (!summaries_ || !looking_.load(std::memory_order_acquire)) return;
  const uint64_t step = step_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < sample.values.size(); ++i) {
    if (!std::isnan(sample.values[i])) summaries_->scalar(tags_[i], step, sample.values[i]);
  }
  summaries_->flush();
}

std::optional<observe::ResourceSummary> Observation::stop() {
  if (!monitor_) return std::nullopt;
  monitor_->stop();
  return monitor_->summary();
}

std::vector<observe::Metric> Observation::figures() const {
  std::vector<observe::Metric> all;
  if (role_.figures) all = role_.figures();
  if (monitor_) {
    const observe::Sample latest = monitor_->latest();
    for (size_t i = 0; i < latest.values.size(); ++i) {
      if (std::isnan(latest.values[i])) continue;
      all.push_back(
          {monitor_->columns()[i], observe::Metric::Kind::gauge, "see docs/monitor.md", {}, latest.values[i]});
    }
  }
  for (observe::Metric& metric : all) metric.labels.emplace_back("role", role_.name);
  return all;
}

std::string events_folder(const Settings& settings, const ObservedRole& role) {
  if (settings.summary_dir.empty()) return role.folder;
  std::filesystem::path run = std::filesystem::absolute(role.folder).lexically_normal();
  if (!role.subfolder.empty()) run = run.parent_path();
  return (settings.summary_dir / run.filename() / role.subfolder).string();
}

std::string metrics_address(const Settings& settings, int position) {
  if (settings.metrics.empty()) return "";
  const cluster::Address address = metrics_place(settings.metrics);
  if (!cluster::is_loopback(address.host) && !settings.insecure) {
    throw UsageError(fmt::format("metrics: {} can be reached from beyond this machine; give --insecure to allow that",
                                 settings.metrics));
  }
  const int port = address.port + position;
  if (port > 65535) throw UsageError(fmt::format("metrics: port {} of {} is above 65535", port, settings.metrics));
  return cluster::join_address(address.host, port);
}

}  // namespace lockstep::train
