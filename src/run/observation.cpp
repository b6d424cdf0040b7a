#include "run/observation.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "lockstep/error.h"
#include "observe/monitor/sampler.h"
#include "settings/metrics_address.h"

namespace lockstep::run {
namespace {

/// Returns the folder of the run that the role belongs to.
std::filesystem::path run_folder(const ObservedRole& role) {
  const std::filesystem::path folder = std::filesystem::absolute(role.folder).lexically_normal();
  return role.subfolder.empty() ? folder : folder.parent_path();
}

constexpr double kMeansSeconds = 5;  ///< between two points of the monitor in the event file, to limit its size

}  // namespace

uint64_t summary_every(const settings::Settings& settings) {
  return settings.summary_every == "never" ? 0 : std::stoull(settings.summary_every);
}

Observation::Observation(const settings::Settings& settings, ObservedRole role) : role_(std::move(role)) {
  const auto say = [this](const std::string& text) { warn(text); };
  if (summary_every(settings) > 0) {
    const std::string folder = events_folder(settings, role_);
    std::error_code ignored;  // if this fails, the writer reports the missing folder
    std::filesystem::create_directories(folder, ignored);
    summaries_.emplace(folder, say);
  }
  if (role_.first_step) go_on_from(*role_.first_step);
  if (settings.monitor_every > 0) {
    observe::MonitorOptions options;
    options.every = std::chrono::duration<double>(settings.monitor_every);
    options.csv_file = role_.folder + "/monitor.csv";
    options.traffic = role_.traffic;
    options.on_sample = [this](const observe::Sample& sample) { on_sample(sample); };
    options.warn = say;
    monitor_.emplace(std::move(options));
    for (const std::string& column : monitor_->columns()) tags_.push_back("monitor/" + column);
    means_.resize(tags_.size());
    looking_.store(true, std::memory_order_release);
  }
  labels_ = {{"role", role_.name},
             {"run", run_folder(role_).filename().string()},
             {"model", std::filesystem::path(settings.model).filename().string()},
             {"dataset", std::filesystem::path(settings.dataset).filename().string()}};
  serve(settings::metrics_address(settings, role_.position));
}

void Observation::warn(const std::string& text) const {
  if (role_.log) role_.log("warning", text);
}

void Observation::serve(const std::string& address) {
  if (address.empty()) return;
  try {
    metrics_.emplace(address, [this] { return figures(); });
  } catch (const Error& error) {
    warn(fmt::format("no metrics: {}", error.what()));
  }
}

void Observation::go_on_from(uint64_t step) {
  at_step(step);
  if (summaries_) summaries_->go_on_from(step);
}

void Observation::on_sample(const observe::Sample& sample) {
  if (!summaries_ || !looking_.load(std::memory_order_acquire)) return;
  for (size_t i = 0; i < sample.values.size(); ++i) {
    if (std::isnan(sample.values[i])) continue;
    means_[i].sum += sample.values[i];
    ++means_[i].count;
  }
  const int64_t step = step_.load(std::memory_order_relaxed);
  const bool due = means_written_ < 0 || sample.seconds - means_written_ >= kMeansSeconds;
  if (step < 0 || !due) return;
  means_written_ = sample.seconds;
  write_means(static_cast<uint64_t>(step));
}

void Observation::write_means(uint64_t step) {
  for (size_t i = 0; i < means_.size(); ++i) {
    const Mean mean = std::exchange(means_[i], {});
    if (mean.count > 0) summaries_->scalar(tags_[i], step, mean.sum / static_cast<double>(mean.count));
  }
  summaries_->flush();
}

std::optional<observe::ResourceSummary> Observation::stop() {
  if (!monitor_) return std::nullopt;
  monitor_->stop();
  const int64_t step = step_.load(std::memory_order_relaxed);
  if (summaries_ && step >= 0) write_means(static_cast<uint64_t>(step));
  return monitor_->summary();
}

std::vector<observe::Metric> Observation::figures() const {
  std::vector<observe::Metric> all;
  if (role_.figures) all = role_.figures();
  if (monitor_) {
    const observe::Sample latest = monitor_->latest();
    for (size_t i = 0; i < latest.values.size(); ++i) {
      if (std::isnan(latest.values[i])) continue;
      const std::string& column = monitor_->columns()[i];
      all.push_back({column, observe::Metric::Kind::gauge, observe::column_help(column), {}, latest.values[i]});
    }
  }
  for (observe::Metric& metric : all) metric.labels.insert(metric.labels.end(), labels_.begin(), labels_.end());
  return all;
}

std::string events_folder(const settings::Settings& settings, const ObservedRole& role) {
  if (settings.summary_dir.empty()) return role.folder;
  return (settings.summary_dir / run_folder(role).filename() / role.subfolder).string();
}

}  // namespace lockstep::run
