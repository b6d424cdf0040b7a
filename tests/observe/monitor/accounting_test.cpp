// The arithmetic of the monitor without a machine: trees of processes, rates, statistics, the CSV file, GPUs.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <random>

#include "base/temp_dir.h"
#include "observe/monitor/column_statistics.h"
#include "observe/monitor/gpu_reader.h"
#include "observe/monitor/monitor_csv.h"
#include "observe/monitor/node_reader.h"
#include "observe/monitor/sampler.h"
#include "observe/monitor/tree_ledger.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::TempDir;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using Entry = TreeLedger::Entry;

Entry process(pid_t pid, pid_t parent, uint64_t own, uint64_t waited = 0) {
  Entry entry;
  entry.pid = pid;
  entry.parent = parent;
  entry.own[TreeLedger::user] = own;
  entry.waited[TreeLedger::user] = waited;
  return entry;
}

uint64_t user(const TreeLedger& ledger) { return ledger.totals()[TreeLedger::user]; }

TEST(TreeLedger, WhatAnEndedChildUsedCountsOnce) {
  TreeLedger ledger;
  ledger.look(std::vector{process(1, 0, 10)});
  ledger.look(std::vector{process(1, 0, 12), process(2, 1, 30)});
  EXPECT_EQ(user(ledger), 42U);
  // It used 5 more before it ended; its parent has waited for it.
  ledger.look(std::vector{process(1, 0, 12, 35)});
  EXPECT_EQ(user(ledger), 47U);
  // A process that came and went between two readings.
  ledger.look(std::vector{process(1, 0, 12, 38)});
  EXPECT_EQ(user(ledger), 50U);
}

TEST(TreeLedger, AParentThatWasSeenBeforeItWaitedDoesNotCountTheChildAgain) {
  TreeLedger ledger;
  ledger.look(std::vector{process(1, 0, 1), process(2, 1, 100)});
  ledger.look(std::vector{process(1, 0, 1)});  // the child ended during the reading
  EXPECT_EQ(user(ledger), 101U);
  ledger.look(std::vector{process(1, 0, 1, 103)});
  EXPECT_EQ(user(ledger), 104U);
}

TEST(TreeLedger, AGrandchildThatEndsWithItsParentCountsOnce) {
  TreeLedger ledger;
  ledger.look(std::vector{process(1, 0, 1), process(2, 1, 10), process(3, 2, 100)});
  ledger.look(std::vector{process(1, 0, 1, 112)});
  EXPECT_EQ(user(ledger), 113U);
}

TEST(TreeLedger, AnOrphansTimeStaysWhenItEndsAndNothingGoesBack) {
  TreeLedger ledger;
  ledger.look(std::vector{process(1, 0, 1), process(2, 1, 10), process(3, 2, 100)});
  ledger.look(std::vector{process(1, 0, 1, 10), process(3, 99, 120)});
  EXPECT_EQ(user(ledger), 131U);
  ledger.look(std::vector{process(1, 0, 4, 10)});
  EXPECT_EQ(user(ledger), 134U);
  ledger.look(std::vector{process(1, 0, 2, 3)});  // cannot happen, and does no harm
  EXPECT_EQ(user(ledger), 134U);
}

/// A simulated machine: processes work, fork, end and are waited for in any order; the ledger takes readings in
/// between.
TEST(TreeLedger, TheTotalOfRandomTreesIsWhatWasUsed) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Entry> living{process(1, 0, 0)};
    TreeLedger ledger;
    uint64_t used = 0;
    uint64_t before = 0;
    pid_t next = 2;
    for (int event = 0; event < 300; ++event) {
      const size_t which = random() % living.size();
      if (random() % 10 < 2) {
        living.push_back(process(next++, living[which].pid, 0));
      } else if (random() % 10 == 0 && which > 0) {
        const Entry gone = living[which];
        const bool parent =
            std::any_of(living.begin(), living.end(), [&](const Entry& e) { return e.parent == gone.pid; });
        if (parent) continue;  // this process waits for its children
        for (Entry& entry : living) {
          if (entry.pid == gone.parent) {
            entry.waited[TreeLedger::user] += gone.own[TreeLedger::user] + gone.waited[TreeLedger::user];
          }
        }
        living.erase(living.begin() + static_cast<ptrdiff_t>(which));
      } else {
        const uint64_t more = random() % 50;
        living[which].own[TreeLedger::user] += more;
        used += more;
      }
      if (random() % 5 != 0) continue;
      ledger.look(living);
      EXPECT_GE(user(ledger), before);
      before = user(ledger);
      ASSERT_EQ(before, used) << "seed " << seed;
    }
  }
}

Reading reading(double seconds) {
  Reading made;
  made.when = std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds)));
  made.node.stat = {.user = 100, .system = 100, .idle = 800, .iowait = 0, .steal = 0, .context_switches = 1000};
  made.node.interfaces = {{"lo", 0, 0, 0, 0}, {"eth0", 1000, 10, 2000, 20}, {"a,b", 0, 0, 0, 0}};
  made.gpus.resize(1);
  return made;
}

double at(const Sampler& sampler, const std::vector<double>& values, const std::string& column) {
  const auto place = std::find(sampler.columns().begin(), sampler.columns().end(), column);
  EXPECT_NE(place, sampler.columns().end()) << column;
  return values[static_cast<size_t>(place - sampler.columns().begin())];
}

TEST(Sampler, RatesAreOverTheTimeBetweenTwoReadings) {
  Reading before = reading(10);
  before.process.user_seconds = 1;
  before.process.system_seconds = 2;
  before.has_traffic = true;
  before.traffic = {100, 200, 1, 2};
  Reading after = reading(12);
  after.process.user_seconds = 2;
  after.process.system_seconds = 2.5;
  after.process.rss_bytes = 4096;
  after.has_traffic = true;
  after.traffic = {1100, 2200, 11, 22};
  after.node.stat = {.user = 140, .system = 120, .idle = 820, .iowait = 10, .steal = 10, .context_switches = 3000};
  after.node.interfaces = {{"lo", 50, 5, 60, 6}, {"eth0", 3000, 30, 8000, 40}, {"new", 9000, 9, 9000, 9}};
  after.gpus[0] = {50, 1e9, 300};
  Sampler sampler(before);
  const std::vector<double> values = sampler.advance(after);
  ASSERT_EQ(values.size(), sampler.columns().size());
  EXPECT_DOUBLE_EQ(sampler.interval(), 2);
  EXPECT_DOUBLE_EQ(at(sampler, values, "cpu_percent"), 75);
  EXPECT_DOUBLE_EQ(at(sampler, values, "user_percent"), 50);
  EXPECT_DOUBLE_EQ(at(sampler, values, "system_percent"), 25);
  EXPECT_DOUBLE_EQ(at(sampler, values, "rss_bytes"), 4096);
  EXPECT_TRUE(std::isnan(at(sampler, values, "disk_read")));
  EXPECT_DOUBLE_EQ(at(sampler, values, "wire_sent"), 500);
  EXPECT_DOUBLE_EQ(at(sampler, values, "wire_received"), 1000);
  EXPECT_DOUBLE_EQ(at(sampler, values, "wire_messages_sent"), 5);
  EXPECT_DOUBLE_EQ(at(sampler, values, "wire_messages_received"), 10);
  EXPECT_DOUBLE_EQ(at(sampler, values, "node_cpu_percent"), 60);
  EXPECT_DOUBLE_EQ(at(sampler, values, "node_user_percent"), 40);
  EXPECT_DOUBLE_EQ(at(sampler, values, "node_iowait_percent"), 10);
  EXPECT_DOUBLE_EQ(at(sampler, values, "node_steal_percent"), 10);
  EXPECT_DOUBLE_EQ(at(sampler, values, "node_context_switches"), 1000);
  EXPECT_DOUBLE_EQ(at(sampler, values, "lo_received"), 25);
  EXPECT_DOUBLE_EQ(at(sampler, values, "eth0_received"), 1000);
  EXPECT_DOUBLE_EQ(at(sampler, values, "eth0_packets_sent"), 10);
  EXPECT_DOUBLE_EQ(at(sampler, values, "net_sent"), 3000);
  EXPECT_TRUE(std::isnan(at(sampler, values, "a_b_received"))) << "it is gone";
  EXPECT_DOUBLE_EQ(at(sampler, values, "gpu0_percent"), 50);
  EXPECT_DOUBLE_EQ(at(sampler, values, "gpu0_power"), 300);
  // An interface that appears later counts in the sum from then on; a counter that started again gives no huge rate.
  Reading later = after;
  later.when += std::chrono::seconds(1);
  later.node.interfaces = {{"lo", 0, 0, 0, 0}, {"eth0", 0, 0, 0, 0}, {"new", 9500, 9, 9000, 9}};
  const std::vector<double> next = sampler.advance(later);
  EXPECT_DOUBLE_EQ(at(sampler, next, "net_received"), 500);
  EXPECT_DOUBLE_EQ(at(sampler, next, "eth0_received"), 0);
}

TEST(ColumnStatistics, QuantilesAreRightToAHundredthOfTheirSize) {
  ColumnStatistics statistics;
  EXPECT_TRUE(std::isnan(statistics.mean()));
  EXPECT_TRUE(std::isnan(statistics.quantile(0.5)));
  for (int i = 1; i <= 10000; ++i) statistics.add(i * 1e6, 0.5, false);
  statistics.add(std::nan(""), 0.5, false);
  EXPECT_NEAR(statistics.mean(), 5000.5e6, 1);
  EXPECT_NEAR(statistics.quantile(0.5), 5000e6, 55e6);
  EXPECT_NEAR(statistics.quantile(0.95), 9500e6, 100e6);
  EXPECT_DOUBLE_EQ(statistics.max(), 1e10);
}

TEST(ColumnStatistics, ASampleCountsByItsTimeAndABriefOneIsNoPeak) {
  ColumnStatistics statistics;
  statistics.add(0, 9, false);
  statistics.add(100, 1, false);
  statistics.add(1000, 0.001, true);
  EXPECT_NEAR(statistics.mean(), 10.1, 0.01);
  EXPECT_DOUBLE_EQ(statistics.quantile(0.5), 0);
  EXPECT_DOUBLE_EQ(statistics.quantile(0.95), 100);
  EXPECT_DOUBLE_EQ(statistics.max(), 100);
}

TEST(MonitorCsv, GoesOnWithItsFileAndLeavesOneOfOtherColumnsAlone) {
  const TempDir folder;
  const std::string path = folder / "monitor.csv";
  const auto fail = [](const std::string& text) { ADD_FAILURE() << text; };
  MonitorCsv(path, {"a", "b"}, fail).add(1794790047.5, 0.25, std::vector{12345678901.0, std::nan("")});
  std::ofstream(path, std::ios::app) << "1794790048,cut";  // as a kill leaves it
  MonitorCsv(path, {"a", "b"}, fail).add(1794790049, 1, std::vector{0.5, 2.0});
  EXPECT_EQ(get_file(path), "time,seconds,a,b\n1794790047.500,0.250,12345678901,\n1794790049.000,1.000,0.5,2\n");
  const std::string first = get_file(path);
  MonitorCsv other(path, {"a", "c"}, fail);
  other.add(1, 1, std::vector{1.0, 2.0});
  EXPECT_EQ(other.path(), folder / "monitor-2.csv");
  MonitorCsv(path, {"a", "c"}, fail).add(2, 2, std::vector{1.0, 2.0});
  EXPECT_EQ(get_file(path), first);
  EXPECT_EQ(get_file(folder / "monitor-2.csv"), "time,seconds,a,c\n1.000,1.000,1,2\n2.000,2.000,1,2\n");
  EXPECT_THAT(folder.names(), UnorderedElementsAre("monitor.csv", "monitor-2.csv"));
}

TEST(MonitorCsv, AFileThatCannotBeWrittenIsSaidOnce) {
  int warnings = 0;
  MonitorCsv csv("/proc/no/such/monitor.csv", {"a"}, [&](const std::string& text) {
    ++warnings;
    EXPECT_THAT(text, HasSubstr("/proc/no/such/monitor.csv"));
  });
  for (int i = 0; i < 3; ++i) csv.add(1, 1, std::vector{1.0});
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(csv.path(), "");
  MonitorCsv full("/dev/full", {"a"}, [&](const std::string& /*text*/) { ++warnings; });
  for (int i = 0; i < 3; ++i) full.add(1, 1, std::vector{1.0});
  EXPECT_EQ(warnings, 2);
}

/// The files of a control group.
class Group {
 public:
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text << std::flush;
  }
  [[nodiscard]] base::OwnNode node(double cores) const { return {"node1", cores, 0, folder.path(), folder.path()}; }

 private:
  TempDir folder;
};

TEST(GroupReader, ReadsBothVersionsOfControlGroups) {
  const Group first;
  first.put("cpuacct.usage", "4000000\n");
  first.put("cpuacct.usage_user", "3000000\n");
  first.put("cpuacct.usage_sys", "1000000\n");
  first.put("memory.usage_in_bytes", "9000\n");
  first.put("memory.stat", "inactive_file 1\ntotal_cache 77\ntotal_inactive_file 2000\n");
  const Group second;
  second.put("cpu.stat", "usage_usec 4000\nuser_usec 3000\nsystem_usec 1000\nnr_periods 7\n");
  second.put("memory.current", "9000\n");
  second.put("memory.stat", "anon 5\ninactive_file 2000\n");
  for (const Group* group : {&first, &second}) {
    GroupReader reader(group->node(0.5));
    const std::optional<NodeStat> stat = reader.stat();
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->user, 3'000'000U);
    EXPECT_EQ(stat->system, 1'000'000U);
    EXPECT_EQ(reader.memory_used(), 7000U);
  }
}

TEST(GroupDisks, AddUpWhatProcessesReadAndWroteAlsoAfterTheirEnd) {
  const Group group;
  GroupDisks disks(group.node(0.5).cpu_group);
  EXPECT_FALSE(disks.read()) << "no list of processes";
  group.put("cgroup.procs", std::to_string(getpid()) + "\n");
  const std::optional<DiskBytes> before = disks.read();
  ASSERT_TRUE(before);
  const TempDir folder;
  std::ofstream(folder / "written") << std::string(1 << 20, 'x') << std::flush;
  const std::optional<DiskBytes> after = disks.read();
  EXPECT_GE(after->written, before->written);
  group.put("cgroup.procs", "");
  EXPECT_EQ(disks.read()->written, after->written);
  EXPECT_FALSE(disks.read()) << "a group without processes";
}

TEST(GroupReader, PartsThatTheTimerCountsTooHighOnlyDivideTheWhole) {
  const Group group;
  const auto put = [&](const char* all, const char* user, const char* system) {
    group.put("cpuacct.usage", all);
    group.put("cpuacct.usage_user", user);
    group.put("cpuacct.usage_sys", system);
  };
  put("1000000", "1200000", "400000");
  GroupReader reader(group.node(0.5));
  const NodeStat first = *reader.stat();
  EXPECT_EQ(first.user, 750'000U);
  EXPECT_EQ(first.system, 250'000U);
  put("2000000", "1200000", "1600000");
  const NodeStat second = *reader.stat();
  EXPECT_EQ(second.user, 750'000U);
  EXPECT_EQ(second.system, 1'250'000U);
}

TEST(GroupReader, AllIsWhatTheCoresOfTheNodeGive) {
  const Group group;
  group.put("cpuacct.usage", "0");
  group.put("cpuacct.usage_user", "0");
  group.put("cpuacct.usage_sys", "0");
  GroupReader reader(group.node(0.25));
  const auto now = [] {
    return 0.25 * std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const double before = now();
  const auto all = static_cast<double>(reader.stat()->all());
  EXPECT_GE(all, before - 1);
  EXPECT_LE(all, now());
}

TEST(GroupReader, WhatIsNotThereIsNotKnown) {
  GroupReader none({"node1", 0.5, 0, "", ""});
  EXPECT_FALSE(none.stat());
  EXPECT_FALSE(none.memory_used());
  const Group damaged;
  damaged.put("cpu.stat", "user_usec\nsystem_usec x\n");
  damaged.put("memory.current", "max");
  GroupReader reader(damaged.node(0.5));
  EXPECT_FALSE(reader.stat());
  EXPECT_FALSE(reader.memory_used());
}

TEST(GpuReader, WithoutTheLibraryThereAreNone) {
  GpuReader gpus("libno-such-library.so.7");
  EXPECT_EQ(gpus.count(), 0U);
  EXPECT_TRUE(gpus.read().empty());
  GpuReader another("libz.so.1");  // a library, but the wrong one
  EXPECT_EQ(another.count(), 0U);
}

TEST(GpuReader, ReadsWhatTheLibrarySays) {
  GpuReader gpus(LOCKSTEP_FAKE_NVML);
  ASSERT_EQ(gpus.count(), 2U);
  const std::vector<GpuReading> readings = gpus.read();
  EXPECT_DOUBLE_EQ(readings[0].percent, 73);
  EXPECT_DOUBLE_EQ(readings[0].memory_used, 5e9);
  EXPECT_DOUBLE_EQ(readings[0].power, 345.678);
  EXPECT_DOUBLE_EQ(readings[1].percent, 12);
  EXPECT_TRUE(std::isnan(readings[1].power)) << "this one does not tell";
}

}  // namespace
}  // namespace lockstep::observe
