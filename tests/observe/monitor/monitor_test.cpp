// The monitor against independent readings: processes that use a known amount of a resource, measured by their own
// clocks. The machine is shared, so figures of the node are compared as "at least".
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "observe/monitor/resource_monitor.h"
#include "process/child_process.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::TempDir;
using ::testing::HasSubstr;

/// Sums value times time over all samples, by column.
class Totals {
 public:
  void add(const std::vector<std::string>& columns, const Sample& sample) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (std::isnan(sample.values[i])) continue;
      sums_[columns[i]] += sample.values[i] * (sample.seconds - seconds_);
    }
    seconds_ = sample.seconds;
  }
  double operator[](const std::string& column) const {
    return sums_.contains(column) ? sums_.at(column) : std::nan("");
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  std::map<std::string, double> sums_;
  double seconds_ = 0;
};

/// A known_load under a monitor, from before its work to after it.
class Watched {
 public:
  explicit Watched(const std::vector<std::string>& words, bool descendants = false)
      : child_(command(words)), descendants_(descendants) {
    EXPECT_EQ(next_line(), "ready");
  }

  /// Returns the amount that it reports.
  double work() {
    MonitorOptions options;
    options.every = std::chrono::milliseconds(50);
    options.pid = child_.pid();
    options.descendants = descendants_;
    std::vector<Sample> samples;
    options.on_sample = [&samples](const Sample& sample) { samples.push_back(sample); };
    ResourceMonitor monitor(options);
    child_.write("go\n");
    const std::string said = next_line();
    monitor.stop();
    columns_ = monitor.columns();
    last_ = monitor.latest();
    for (const Sample& sample : samples) totals_.add(columns_, sample);
    child_.write("end\n");
    return said.empty() ? std::nan("") : std::stod(said);
  }

  [[nodiscard]] double total(const std::string& column) const { return totals_[column]; }
  [[nodiscard]] double seconds() const { return totals_.seconds(); }
  [[nodiscard]] double last(const std::string& column) const {
    const auto place = std::find(columns_.begin(), columns_.end(), column);
    return place == columns_.end() ? std::nan("") : last_.values[static_cast<size_t>(place - columns_.begin())];
  }

 private:
  static process::Command command(const std::vector<std::string>& words) {
    process::Command made;
    made.argv = {LOCKSTEP_KNOWN_LOAD};
    made.argv.insert(made.argv.end(), words.begin(), words.end());
    made.hold_stdin = true;
    return made;
  }

  std::string next_line() {
    while (lines_.empty() && child_.fd(process::Stream::out) >= 0) {
      pollfd fd{child_.fd(process::Stream::out), POLLIN, 0};
      poll(&fd, 1, -1);
      child_.read(process::Stream::out, [this](const std::string& line) { lines_.push_back(line); });
    }
    if (lines_.empty()) return "";
    const std::string line = lines_.front();
    lines_.erase(lines_.begin());
    return line;
  }

  process::Child child_;
  bool descendants_;
  std::vector<std::string> lines_;
  std::vector<std::string> columns_;
  Sample last_;
  Totals totals_;
};

constexpr double kTick = 0.01;  ///< resolution of another process's time

TEST(Monitor, SeesTheShareOfACoreThatAProcessBurns) {
  Watched load({"cpu", "0.3", "1.0"});
  const double used = load.work();
  ASSERT_GE(used, 0.3);
  // User and system time are each rounded to ticks, at both ends.
  EXPECT_NEAR(load.total("cpu_percent") / 100, used, 4 * kTick);
  EXPECT_NEAR(load.total("user_percent") + load.total("system_percent"), load.total("cpu_percent"), 1e-6);
  const auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_GT(load.total("node_cpu_percent") / 100 * cores, 0.8 * used - 4 * kTick);
  EXPECT_GT(load.total("context_switches"), 10) << "it slept some fifty times";
}

TEST(Monitor, SeesTheMemoryThatAProcessTouches) {
  constexpr double kBytes = 150 << 20;
  constexpr double kRest = 16 << 20;
  Watched load({"memory", std::to_string(150 << 20)});
  EXPECT_EQ(load.work(), kBytes);
  EXPECT_GE(load.last("rss_bytes"), kBytes);
  EXPECT_LE(load.last("rss_bytes"), kBytes + kRest);
  EXPECT_GE(load.last("peak_rss_bytes"), load.last("rss_bytes"));
  EXPECT_LE(load.last("peak_rss_bytes"), kBytes + kRest);
  EXPECT_GE(load.total("minor_faults"), 20) << "at least one for each large page";
  EXPECT_GE(load.last("node_memory_used"), kBytes);
  EXPECT_EQ(load.last("threads"), 1);
}

TEST(Monitor, SeesBytesThatGoOverLoopback) {
  constexpr double kBytes = 100 << 20;
  Watched load({"loopback", std::to_string(100 << 20)});
  EXPECT_EQ(load.work(), kBytes);
  // Loopback's own counters may lag by the last packet.
  EXPECT_GE(load.total("lo_received"), 0.99 * kBytes);
  EXPECT_GE(load.total("lo_sent"), 0.99 * kBytes);
  EXPECT_GE(load.total("lo_packets_sent"), kBytes / (1 << 17));
}

TEST(Monitor, SeesBytesThatAProcessWritesToTheDisk) {
  struct statfs system {};
  constexpr long kTmpfs = 0x01021994;
  if (statfs(".", &system) != 0 || system.f_type == kTmpfs) GTEST_SKIP() << "the tests run in memory, not on a disk";
  if (get_file("/proc/self/io").empty()) GTEST_SKIP() << "this system does not count them by process";
  constexpr double kBytes = 16 << 20;
  const std::string file = "known-load-" + std::to_string(getpid());
  Watched load({"disk", std::to_string(16 << 20), file});
  EXPECT_EQ(load.work(), kBytes);
  unlink(file.c_str());
  EXPECT_GE(load.total("disk_written"), kBytes * (1 - 1e-6));
  EXPECT_LE(load.total("disk_written"), 1.1 * kBytes);
}

TEST(Monitor, AddsUpATreeOfProcessesThatComeAndGo) {
  Watched load({"tree", "0.07"}, true);
  const double used = load.work();
  ASSERT_GT(used, 9 * 0.07);
  // The times of twenty processes are rounded to ticks.
  EXPECT_NEAR(load.total("cpu_percent") / 100, used, 10 * kTick);
}

TEST(Monitor, OfOneProcessItsChildrenDoNotCount) {
  Watched load({"tree", "0.07"}, false);
  const double used = load.work();
  EXPECT_LT(load.total("cpu_percent") / 100, used / 2);
}

TEST(Monitor, SeesThisProcessAsTheSystemDoes) {
  MonitorOptions options;
  options.every = std::chrono::milliseconds(20);
  Totals totals;
  std::vector<Sample> samples;
  options.on_sample = [&](const Sample& sample) { samples.push_back(sample); };
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  ResourceMonitor monitor(options);
  const double before = used();
  std::vector<double> memory(size_t{8} << 20, 1.5);
  while (used() - before < 0.2) {
  }
  const double after = used();
  monitor.stop();
  for (const Sample& sample : samples) totals.add(monitor.columns(), sample);
  EXPECT_GE(totals["cpu_percent"] / 100, (after - before) - 0.005);
  EXPECT_LE(totals["cpu_percent"] / 100, (after - before) + 0.05);
  const ResourceSummary summary = monitor.summary();
  EXPECT_EQ(summary.samples, samples.size());
  const auto of = [&](const std::string& name) {
    return *std::find_if(summary.columns.begin(), summary.columns.end(), [&](const auto& c) { return c.name == name; });
  };
  EXPECT_GE(of("rss_bytes").max, sizeof(double) * static_cast<double>(memory.size()));
  EXPECT_NEAR(of("cpu_percent").mean, totals["cpu_percent"] / totals.seconds(), 1e-6);
  EXPECT_LE(of("cpu_percent").p50, of("cpu_percent").p95);
  EXPECT_LE(of("cpu_percent").p95, of("cpu_percent").max);
  EXPECT_GE(of("peak_rss_bytes").max, of("rss_bytes").max * 0.99);
  EXPECT_FALSE(summary.host.empty());
}

TEST(Monitor, ShowsWhatAMeterCounts) {
  base::TrafficMeter meter;
  meter.sent(999);  // before the first sample
  Totals totals;
  std::vector<Sample> samples;
  MonitorOptions options;
  options.every = std::chrono::milliseconds(5);
  options.traffic = &meter;
  options.on_sample = [&](const Sample& sample) { samples.push_back(sample); };
  ResourceMonitor monitor(options);
  for (int i = 0; i < 20; ++i) {
    meter.sent(1000);
    meter.received(70);
    usleep(1000);
  }
  monitor.stop();
  for (const Sample& sample : samples) totals.add(monitor.columns(), sample);
  EXPECT_NEAR(totals["wire_sent"], 20'000, 1e-3);
  EXPECT_NEAR(totals["wire_received"], 1'400, 1e-3);
  EXPECT_NEAR(totals["wire_messages_sent"], 20, 1e-6);
  EXPECT_NEAR(totals["wire_messages_received"], 20, 1e-6);
}

/// A monitor that waited for its next sample would take an hour.
TEST(Monitor, EndsAtOnceWithALastSample) {
  const TempDir folder;
  MonitorOptions options;
  options.every = std::chrono::hours(1);
  options.csv_file = folder / "monitor.csv";
  ResourceMonitor monitor(options);
  EXPECT_EQ(monitor.summary().samples, 0U);
  EXPECT_EQ(monitor.latest().values.size(), monitor.columns().size());
  monitor.stop();
  monitor.stop();
  EXPECT_EQ(monitor.summary().samples, 1U);
  const std::string text = get_file(options.csv_file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_TRUE(text.starts_with("time,seconds,cpu_percent,user_percent,system_percent,rss_bytes,peak_rss_bytes,"));
  const size_t end = text.find('\n');
  EXPECT_EQ(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), ','),
            std::count(text.begin() + static_cast<ptrdiff_t>(end), text.end(), ','));
}

TEST(Monitor, GoesOnWhenItsFileCannotBeWritten) {
  MonitorOptions options;
  options.every = std::chrono::milliseconds(2);
  options.csv_file = "/proc/no/such/folder/monitor.csv";
  std::atomic<int> samples = 0;
  std::mutex mutex;
  std::vector<std::string> warnings;
  options.on_sample = [&](const Sample& /*sample*/) { ++samples; };
  options.warn = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    warnings.push_back(text);
  };
  ResourceMonitor monitor(options);
  while (samples < 5) usleep(1000);
  monitor.stop();
  const std::lock_guard lock(mutex);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("/proc/no/such/folder/monitor.csv"));
}

TEST(Monitor, AListenerThatThrowsIsSaidOnceAndSamplesGoOn) {
  MonitorOptions options;
  options.every = std::chrono::milliseconds(2);
  std::atomic<int> samples = 0;
  std::atomic<int> warnings = 0;
  options.on_sample = [&](const Sample& /*sample*/) {
    ++samples;
    throw Error("no");
  };
  options.warn = [&](const std::string& /*text*/) { ++warnings; };
  ResourceMonitor monitor(options);
  while (samples < 5) usleep(1000);
  monitor.stop();
  EXPECT_EQ(warnings, 1);
}

TEST(Monitor, AProcessThatIsGoneHasNoFigures) {
  MonitorOptions options;
  options.every = std::chrono::hours(1);
  options.pid = 1 << 22;  // larger than any process id
  ResourceMonitor monitor(options);
  monitor.stop();
  const Sample sample = monitor.latest();
  for (size_t i = 0; i < 12; ++i) EXPECT_TRUE(std::isnan(sample.values[i])) << monitor.columns()[i];
  EXPECT_EQ(monitor.columns()[11], "disk_written");
}

TEST(Monitor, AnyThreadMayAskWhileItRuns) {
  MonitorOptions options;
  options.every = std::chrono::milliseconds(1);
  ResourceMonitor monitor(options);
  for (int i = 0; i < 200 || monitor.summary().samples < 3; ++i) {
    const Sample sample = monitor.latest();
    ASSERT_EQ(sample.values.size(), monitor.columns().size());
    ASSERT_GE(sample.seconds, 0);
  }
}

TEST(Monitor, NothingIsLeftOpen) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  for (int i = 0; i < 10; ++i) {
    MonitorOptions options;
    options.descendants = i % 2 == 0;
    ResourceMonitor monitor(options);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(Monitor, LooksMustHaveATimeBetweenThem) {
  for (const double every : {0.0, -1.0, 1e9, std::nan("")}) {
    MonitorOptions options;
    options.every = std::chrono::duration<double>(every);
    EXPECT_THAT(message_of<UsageError>([&] { const ResourceMonitor monitor(options); }), HasSubstr("are allowed"));
  }
}

}  // namespace
}  // namespace lockstep::observe
