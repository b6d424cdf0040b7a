#include "observe/monitor/resource_monitor.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <exception>
#include <thread>

#include "base/host.h"
#include "base/mutex.h"
#include "base/signals.h"
#include "lockstep/error.h"
#include "observe/monitor/column_statistics.h"
#include "observe/monitor/gpu_reader.h"
#include "observe/monitor/monitor_csv.h"
#include "observe/monitor/node_reader.h"
#include "observe/monitor/process_reader.h"
#include "observe/monitor/sampler.h"

namespace lockstep::observe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBriefShare = 0.1;  ///< share of the interval between samples
constexpr std::chrono::milliseconds kFirstGlimpse(5);
constexpr double kShortestEvery = 0.001;
constexpr double kLongestEvery = 86400;

double now_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

MonitorOptions checked(MonitorOptions options) {
  const double every = options.every.count();
  if (!(every >= kShortestEvery && every <= kLongestEvery)) {
    throw UsageError(
        fmt::format("monitor: every {:g} s; {:g} to {:g} are allowed", every, kShortestEvery, kLongestEvery));
  }
  return options;
}

}  // namespace

class ResourceMonitor::Impl {
 public:
  explicit Impl(MonitorOptions options);
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const std::vector<std::string>& columns() const { return sampler_.columns(); }
  ResourceSummary summary();
  Sample latest();
  void stop();

 private:
  Reading read();
  void run();
  bool wait_until(Clock::time_point moment);
  void watch_beginning(Clock::time_point first_sample);
  void glimpse();
  void look();
  void warn_once(const std::string& text);

  const MonitorOptions options_;
  bool warned_ = false;  ///< declared before csv_, which may warn while it is made
  std::unique_ptr<ProcessReader> process_;
  ProcessTotals seen_;  ///< another process when it still ran
  NodeReader node_;
  GpuReader gpus_;
  Sampler sampler_;
  MonitorCsv csv_;

  base::Mutex mutex_;
  base::Condition wake_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  Sample latest_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t samples_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::vector<ColumnStatistics> statistics_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

ResourceMonitor::Impl::Impl(MonitorOptions options)
    : options_(checked(std::move(options))),
      process_((options_.pid == 0 || options_.pid == getpid()) && !options_.descendants
                   ? read_self()
                   : read_process(options_.pid == 0 ? getpid() : options_.pid, options_.descendants)),
      sampler_(read()),
      csv_(options_.csv_file, sampler_.columns(), [this](const std::string& text) { warn_once(text); }),
      statistics_(sampler_.columns().size()) {
  latest_.values.assign(sampler_.columns().size(), std::nan(""));
  const base::SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Reading ResourceMonitor::Impl::read() {
  Reading reading;
  reading.when = Clock::now();
  reading.process = process_->read();
  reading.has_traffic = options_.traffic != nullptr;
  if (reading.has_traffic) reading.traffic = options_.traffic->totals();
  reading.node = node_.read();
  reading.gpus = gpus_.read();
  return reading;
}

/// Returns whether the monitor is asked to stop, at the latest at this moment.
bool ResourceMonitor::Impl::wait_until(Clock::time_point moment) {
  const base::MutexLock lock(mutex_);
  while (!stopping_ && Clock::now() < moment) wake_.wait_for(mutex_, moment - Clock::now());
  return stopping_;
}

/// Looks at the memory of another process, again and again after twice the time: a process that ends before the first
/// sample has none any more.
void ResourceMonitor::Impl::watch_beginning(Clock::time_point first_sample) {
  const Clock::time_point begun = Clock::now();
  bool stopping = false;
  for (Clock::duration after = kFirstGlimpse; !stopping && begun + after < first_sample; after *= 2) {
    stopping = wait_until(begun + after);
    if (!stopping) glimpse();
  }
}

void ResourceMonitor::Impl::glimpse() {
  try {
    const ProcessTotals now = process_->read();
    if (!std::isnan(now.rss_bytes)) seen_ = now;
  } catch (const std::exception& error) {
    warn_once(fmt::format("monitor: {}", error.what()));
  }
}

void ResourceMonitor::Impl::run() {
  pthread_setname_np(pthread_self(), "monitor");
  const auto every = std::chrono::duration_cast<Clock::duration>(options_.every);
  Clock::time_point next = Clock::now() + every;
  if (options_.pid != 0 && options_.pid != getpid()) watch_beginning(next);
  for (bool last = false; !last;) {
    last = wait_until(next);
    try {
      look();
    } catch (const std::exception& error) {
      warn_once(fmt::format("monitor: {}", error.what()));
    }
    // After a pause of the whole machine sampling continues from here; missed samples are not made up.
    next = std::max(next + every, Clock::now());
  }
}

void ResourceMonitor::Impl::look() {
  Sample sample;
  Reading reading = read();
  if (std::isnan(reading.process.rss_bytes)) {  // it has ended
    reading.process.rss_bytes = seen_.rss_bytes;
    reading.process.threads = seen_.threads;
  }
  seen_ = {};
  sample.values = sampler_.advance(std::move(reading));
  sample.time = now_since_1970();
  sample.seconds = sampler_.seconds();
  const double interval = sampler_.interval();
  {
    const base::MutexLock lock(mutex_);
    const bool brief = interval < kBriefShare * options_.every.count();
    for (size_t i = 0; i < statistics_.size(); ++i) statistics_[i].add(sample.values[i], interval, brief);
    ++samples_;
    latest_ = sample;
  }
  csv_.add(sample.time, sample.seconds, sample.values);
  if (options_.on_sample) options_.on_sample(sample);
}

void ResourceMonitor::Impl::warn_once(const std::string& text) {
  if (!warned_ && options_.warn) options_.warn(text);
  warned_ = true;
}

ResourceSummary ResourceMonitor::Impl::summary() {
  constexpr double kMedian = 0.5;
  constexpr double kHigh = 0.95;
  ResourceSummary summary;
  summary.host = base::host_name();
  summary.every = options_.every.count();
  const base::MutexLock lock(mutex_);
  summary.samples = samples_;
  for (size_t i = 0; i < statistics_.size(); ++i) {
    const ColumnStatistics& of = statistics_[i];
    if (std::isnan(of.mean())) continue;
    summary.columns.push_back({sampler_.columns()[i], of.mean(), of.quantile(kMedian), of.quantile(kHigh), of.max()});
  }
  return summary;
}

Sample ResourceMonitor::Impl::latest() {
  const base::MutexLock lock(mutex_);
  return latest_;
}

void ResourceMonitor::Impl::stop() {
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

ResourceMonitor::ResourceMonitor(MonitorOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ResourceMonitor::~ResourceMonitor() = default;
const std::vector<std::string>& ResourceMonitor::columns() const { return impl_->columns(); }
ResourceSummary ResourceMonitor::summary() const { return impl_->summary(); }
Sample ResourceMonitor::latest() const { return impl_->latest(); }
void ResourceMonitor::stop() { impl_->stop(); }

}  // namespace lockstep::observe
