// Logs of dstat and collectl as columns of monitor.csv.
#include "guest/usage_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "guest/guest_run.h"
#include "lockstep/error.h"
#include "observe/tensorboard/summary_writer.h"
#include "records/run_record.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDstatHead =
    "\"Dstat 0.7.2 CSV output\"\n"
    "\"Author:\",\"A. Uthor\",,,,\"URL:\",\"-\"\n"
    "\"Host:\",\"n1\",,,,\"User:\",\"root\"\n"
    "\"Cmdline:\",\"dstat -tcmnd --output x.csv\",,,,\"Date:\",\"31 Dec 2020 23:59:58 UTC\"\n"
    "\n";
const std::string kDstatNames =
    "\"system\",\"total cpu usage\",,,,,,\"memory usage\",,,,\"net/total\",,\"dsk/total\",,\"most expensive\"\n"
    "\"time\",\"usr\",\"sys\",\"idl\",\"wai\",\"hiq\",\"siq\",\"used\",\"buff\",\"cach\",\"free\",\"recv\",\"send\","
    "\"read\",\"writ\",\"cpu process\"\n";
const std::string kDstatRows =
    "31-12 23:59:58,9,9,0,0,0,0,1,1,1,1,0,0,0,0,init\n"
    "31-12 23:59:59,20.5,1.5,70,6,0.5,1.5,2e9,1,1,1,1000,2000,4096,0,\"python3, two\"\n"
    "31-12 24:00:00,10,0,90,0,0,0,3e9,1,1,1,3000,0,0,512,x\n";

std::string log_refusal(const std::string& text, double every = 0) {
  return message_of<DataError>([&] { (void)guest::parse_usage_log(text, "use.log", every); });
}

double at(const guest::UsageLog& log, const std::string& column, size_t row) {
  const auto found = std::find(log.columns.begin(), log.columns.end(), column);
  return found == log.columns.end() ? -1 : log.rows.at(row)[static_cast<size_t>(found - log.columns.begin())];
}

TEST(UsageLog, ALogOfDstatIsReadWithoutItsFirstSample) {
  std::string rows = kDstatRows;
  rows.replace(rows.find("31-12 24:00:00"), 14, "31-12 23:59:59");
  const guest::UsageLog log = guest::parse_usage_log(kDstatHead + kDstatNames + rows, "use.log");
  EXPECT_EQ(log.tool, "dstat");
  EXPECT_EQ(log.host, "n1");
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_EQ(log.times[0], 1609459199);
  EXPECT_EQ(at(log, "node_cpu_percent", 0), 24);
  EXPECT_EQ(at(log, "node_system_percent", 0), 3.5);
  EXPECT_EQ(at(log, "node_memory_used", 1), 3e9);
  EXPECT_EQ(at(log, "net_received", 1), 3000);
  EXPECT_EQ(at(log, "node_disk_written", 1), 512);
  EXPECT_EQ(at(log, "node_steal_percent", 0), -1) << "the log has no such column";
}

TEST(UsageLog, DstatWithSecondsOrWithoutTimes) {
  const std::string names = "\"epoch\",\"total cpu usage\",\n\"epoch\",\"usr\",\"sys\"\n";
  const guest::UsageLog epochs = guest::parse_usage_log(
      kDstatHead.substr(0, kDstatHead.size() - 1) + names + "1e9,0,0\n1000000001.5,1,2\n", "use.log");
  EXPECT_THAT(epochs.times, ElementsAre(1000000001.5));
  const std::string plain = kDstatHead + "\"net/total\",\n\"recv\",\"send\"\n0,0\n1,2\n3,4\n5";
  EXPECT_THAT(log_refusal(plain), HasSubstr("use.log:7: the log has no times (dstat -t or -T)"));
  EXPECT_THAT(guest::parse_usage_log(plain, "use.log", 5).times, ElementsAre(10, 15));
}

TEST(UsageLog, ALogOfCollectlIsReadInItsPlotFormat) {
  const guest::UsageLog log = guest::parse_usage_log(
      "######\n# Collectl:   V4.0.5-1\n# Host:       n2  DaemonOpts:\n######\n"
      "#Date Time [CPU]User% [CPU]Nice% [CPU]Sys% [CPU]Wait% [CPU]Irq% [CPU]Soft% [MEM]Used [NET]RxKBTot [NET]TxKBTot "
      "[DSK]ReadKBTot\n"
      "20201123 18:57:54 1 0 2 3 0 1 1000 8 16 4\n20201123 18:57:55.500 2 0 2 3 0 1 1000 8 16 4\n",
      "use.log");
  EXPECT_EQ(log.host, "n2");
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_EQ(log.times[1] - log.times[0], 1.5);
  EXPECT_EQ(at(log, "node_cpu_percent", 0), 4);
  EXPECT_EQ(at(log, "node_memory_used", 0), 1024000);
  EXPECT_EQ(at(log, "net_sent", 0), 16384);
  const guest::UsageLog utc =
      guest::parse_usage_log("#UTC,[CPU]User%,[NET]RxKBTot\n1606157873,5,1\n1606157874,6,1\n", "use.log");
  EXPECT_THAT(utc.times, ElementsAre(1606157873, 1606157874));
  EXPECT_EQ(at(utc, "node_cpu_percent", 1), 6);
}

TEST(UsageLog, WhatDoesNotFitIsOneLineWithItsPlace) {
  EXPECT_THAT(log_refusal(""), HasSubstr("use.log: is empty"));
  EXPECT_THAT(log_refusal("a,b\n1,2\n"), HasSubstr("use.log:1: is neither a CSV file of dstat"));
  EXPECT_THAT(log_refusal(kDstatHead + kDstatNames), HasSubstr("use.log: has no samples"));
  EXPECT_THAT(log_refusal(kDstatHead + kDstatNames + kDstatRows), HasSubstr("use.log:10: its time is not one"));
  EXPECT_THAT(log_refusal(kDstatHead + kDstatNames + "x\n"),
              HasSubstr("use.log:8: has 1 cells, but the names above have 16"));
  EXPECT_THAT(log_refusal(kDstatHead + "\"a\",\"b\"\n\"c\"\n"), HasSubstr("use.log:7: has other columns"));
  EXPECT_THAT(log_refusal(kDstatHead + "\"swap\"\n\"used\"\n1\n"),
              HasSubstr("use.log:7: the log has no column of CPU"));
  std::string negative = kDstatRows.substr(0, kDstatRows.find("31-12 24"));
  negative.replace(negative.find("20.5"), 4, "-1.0");
  EXPECT_THAT(log_refusal(kDstatHead + kDstatNames + negative),
              HasSubstr("use.log:9: total cpu usage/usr: '-1.0' is not"));
  EXPECT_THAT(log_refusal("#UTC [CPU]User% [CPU]Sys%\n5 1 1\n4 1 1\n"), HasSubstr("use.log:3: its time is before"));
  EXPECT_THAT(log_refusal("# Host: x\n1 2 3\n"), HasSubstr("use.log:2: a collectl log in plot format"));
}

TEST(UsageLog, OneColumnBesideTheTimeIsEnough) {
  const guest::UsageLog log = guest::parse_usage_log("#UTC [CPU]User%\n1 5\n2 7\n", "use.log", 0);
  EXPECT_THAT(log.rows, ElementsAre(ElementsAre(5, 5), ElementsAre(7, 7))) << "CPU, and CPU of programs";
}

TEST(UsageLog, LogsBecomeARunWithTheUseOfEachRole) {
  const TempDir folder;
  const auto put = [&](const char* name, const std::string& text) {
    put_file(folder / name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  put("a.csv", kDstatHead + "\"epoch\",\"total cpu usage\",\n\"epoch\",\"usr\",\"sys\"\n1,0,0\n2,10,2\n4,20,2\n");
  put("b.log", "#UTC [CPU]User% [NET]RxKBTot\n1 5 1\n2 7 3\n");
  guest::GuestOptions options;
  options.run_dir = folder / "run";
  options.logs = {guest::parse_log("worker:0=" + (folder / "a.csv")), guest::parse_log("ps:0=" + (folder / "b.log"))};
  {
    observe::SummaryWriter writer(folder / "events", [](const std::string&) {});
    writer.scalar("l", 1, 0.5);
  }
  options.figures = {guest::parse_source("loss=events:" + (folder / "events") + "#l")};
  guest::import_logs(options);
  const records::RunRecord run = records::read_run(options.run_dir);
  EXPECT_EQ(run.state, records::RunState::ended);
  ASSERT_EQ(run.roles.size(), 2U);
  EXPECT_EQ(run.roles[0].host, "n1");
  EXPECT_EQ(run.roles[0].resource("node_cpu_percent").mean, 17);
  EXPECT_EQ(run.roles[1].role, "ps:0");
  EXPECT_EQ(run.roles[1].resource("net_received").max, 3072);
  EXPECT_EQ(run.seconds(), 2);
  EXPECT_EQ(guest::parse_log("ps:0=x.csv@5s").every, 5);
  EXPECT_THAT(run.evals().column("loss"), ElementsAre(0.5));
  EXPECT_TRUE(run.evals().column("seconds").empty() || std::isnan(run.evals().column("seconds")[0]))
      << "the log does not say when it began";
  const auto refusal = [&] { return message_of<UsageError>([&] { guest::import_logs(options); }); };
  EXPECT_THAT(refusal(), HasSubstr("already holds a run"));
  options.run_dir = folder / "another";
  options.logs[1] = options.logs[0];
  EXPECT_EQ(refusal(), "--log: worker:0 has two logs");
  options.logs[1].role = "process";
  EXPECT_THAT(refusal(), HasSubstr("has one log"));
  EXPECT_THAT(message_of<UsageError>([] { (void)guest::parse_log("node1=x.csv"); }), HasSubstr("node1"));
}

}  // namespace
}  // namespace lockstep::testing
