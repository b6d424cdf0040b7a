#include "records/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "lockstep/error.h"
#include "records/run_folders.h"
#include "records/why.h"
#include "run/server_phases.h"

namespace lockstep::records {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::get_file;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using testing::message_of;
using testing::put_text;
using testing::TempDir;
using testing::write_cluster_run;

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest() : path(folder / "lr-7") { write_cluster_run(path); }

  /// Keeps only the beginning of a file, as after a kill or on a full disk.
  void cut(const std::string& file, double part) const {
    const std::string text = get_file(path + "/" + file);
    put_text(path + "/" + file, text.substr(0, static_cast<size_t>(part * static_cast<double>(text.size()))));
  }

  TempDir folder;
  std::string path;
};

TEST_F(RunRecordTest, AServerThatStillServesHasTheStagesItWroteSoFar) {
  const std::string server = path + "/ps-0";
  fs::remove(server + "/summary.json");
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  base::DurationRecord receive{.name = "receive", .count = 1, .seconds = 0.5};
  base::DurationRecord apply{.name = "apply", .count = 1, .seconds = 0.25};
  const auto stages = [&] { return std::vector{receive, apply}; };
  {
    run::ServerPhases phases(server, 10, warn);
    phases.look({.version = 3, .pushes = 6, .seconds = 0.5, .stages = stages()});  // not due
    EXPECT_THAT(read_run(path).role("ps:0")->phases, IsEmpty());
    phases.look({.version = 12, .pushes = 24, .seconds = 1, .stages = stages()});
    receive.seconds = 1.5;
    phases.look({.version = 19, .pushes = 38, .seconds = 1.5, .stages = stages()});  // not due
    phases.look({.version = 21, .pushes = 42, .seconds = 2, .stages = stages()});
  }
  const auto seconds = [&](const char* name) { return read_run(path).role("ps:0")->phase_seconds(name); };
  EXPECT_EQ(seconds("receive"), 1.5);
  EXPECT_EQ(seconds("apply"), 0.25);
  const std::vector<PhaseTotals> read = read_run(path).role("ps:0")->phases;
  ASSERT_EQ(read.size(), 2U) << "stages that took no time, and pushes, are no phases";
  EXPECT_THAT(read[0].mean, IsNan()) << "a stage has no count of its own";
  EXPECT_DOUBLE_EQ(read[0].share, 1.5 / 1.75);
  {
    // A server that is started again from version 12 repeats what came after it.
    run::ServerPhases again(server, 10, warn);
    again.look({.version = 12, .pushes = 0, .seconds = 0, .stages = {}});
    again.end({.version = 13, .pushes = 2, .seconds = 0.1, .stages = stages()});
  }
  EXPECT_EQ(seconds("receive"), 0.5 + 1.5);
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_THAT(read_run(path).warnings, IsEmpty());
}

TEST_F(RunRecordTest, PhasesOfAServerThatCannotBeWrittenAreReportedOnce) {
  std::vector<std::string> warnings;
  run::ServerPhases phases(path + "/nowhere", 1, [&](const std::string& text) { warnings.push_back(text); });
  for (const uint64_t version : {1, 2, 3}) phases.look({.version = version, .pushes = 1, .seconds = 1, .stages = {}});
  phases.end({.version = 4, .pushes = 1, .seconds = 1, .stages = {}});
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("nowhere/phases.csv")));
}

TEST_F(RunRecordTest, EveryRoleIsReadWithWhatItLeft) {
  const RunRecord run = read_run(path);
  EXPECT_THAT(run.warnings, IsEmpty());
  EXPECT_EQ(run.name, "lr-7");
  EXPECT_EQ(run.state, RunState::ended);
  ASSERT_EQ(run.roles.size(), 3);
  EXPECT_EQ(run.roles[0].role, "worker:0");
  EXPECT_EQ(run.roles[1].role, "worker:1");
  EXPECT_EQ(run.roles[2].role, "ps:0");
  EXPECT_EQ(run.roles[1].host, "south");
  EXPECT_EQ(run.workers(), 2);
  EXPECT_EQ(run.servers(), 1);
  EXPECT_FALSE(run.all_reduce());
  EXPECT_EQ(run.setting("options.hidden"), "3");
  EXPECT_EQ(run.steps(), 200);
  EXPECT_EQ(run.examples(), 40000);
  EXPECT_EQ(run.test_accuracy(), 0.892);
  EXPECT_DOUBLE_EQ(run.seconds_per_step(), 0.0025);
  ASSERT_NE(run.worker("worker:1"), nullptr);
  EXPECT_EQ(run.worker("worker:1")->restarts, 1);
}

TEST_F(RunRecordTest, PhasesAndResourcesComeFromTheSummary) {
  const RunRecord run = read_run(path);
  EXPECT_EQ(run.chief().phase_seconds("pull"), 0.15);
  EXPECT_DOUBLE_EQ(run.chief().phases[1].share, 0.75);
  EXPECT_EQ(run.chief().samples, 12);
  EXPECT_EQ(run.chief().resource("cpu_percent").p95, 99);
  EXPECT_EQ(run.roles[2].phase_seconds("apply"), 0.1);
}

TEST_F(RunRecordTest, WithoutASummaryTheyAreAddedUpFromTheLogs) {
  const RunRecord run = read_run(path);
  const RoleRecord& role = run.roles[1];  // its summary has neither
  EXPECT_DOUBLE_EQ(role.phase_seconds("pull"), 0.16);
  EXPECT_NEAR(role.all_phase_seconds(), 0.4, 1e-12);
  EXPECT_EQ(role.phase_seconds("transfer"), 0);
  EXPECT_EQ(role.samples, 3);
  EXPECT_EQ(role.resource("cpu_percent").mean, 90);
  EXPECT_EQ(role.resource("wire_received").max, 3000000);
  EXPECT_THAT(role.resource("gpu0_percent").mean, IsNan());
}

TEST_F(RunRecordTest, SeveralMonitorFilesAreOne) {
  put_text(path + "/worker-1/monitor-2.csv", "time,seconds,cpu_percent\n1,2.0,30\n");
  EXPECT_EQ(read_run(path).roles[1].monitor.rows(), 4);
}

TEST_F(RunRecordTest, AKilledRunIsReadAsFarAsItGot) {
  fs::remove(path + "/summary.json");
  fs::remove(path + "/ps-0/summary.json");
  for (const char* file : {"steps.csv", "phases.csv", "monitor.csv", "worker-1/steps.csv"}) cut(file, 0.93);
  const RunRecord run = read_run(path);
  EXPECT_EQ(run.state, RunState::broken);
  EXPECT_THAT(run.warnings, IsEmpty());
  EXPECT_EQ(run.steps(), 100);
  EXPECT_EQ(run.examples(), 20000);
  EXPECT_EQ(run.test_accuracy(), 0.892);
  EXPECT_EQ(run.chief().role, "worker:0");
  EXPECT_EQ(run.chief().phase_seconds("forward"), 0.02);
  EXPECT_EQ(run.workers(), 2);
}

TEST_F(RunRecordTest, ARunThatWasResumedAndKilledHasTheNumbersOfItsLogs) {
  put_text(path + "/steps.csv", std::string(testing::kStepsCsv) + "300,1,0.9,0.3,0.9,0.1,50000.0,0.004\n");
  put_text(path + "/phases.csv", std::string(testing::kPhasesCsv) + "300,0.9,100,0.01,0.5,0,0,0,0,0,0,0,0,0\n");
  const RunRecord run = read_run(path);
  EXPECT_EQ(run.state, RunState::broken);
  EXPECT_TRUE(run.went_on);
  EXPECT_EQ(run.steps(), 300);
  EXPECT_EQ(run.seconds(), 0.9);
  EXPECT_EQ(run.examples(), 60000);
  EXPECT_EQ(run.examples_per_second(), mean(std::vector<double>{100000, 100000, 50000}));
  EXPECT_DOUBLE_EQ(run.chief().phase_seconds("forward"), 0.54);
  EXPECT_EQ(run.chief().samples, 3);
  EXPECT_EQ(run.chief().host, "north");
  EXPECT_EQ(run.chief().role, "worker:0");
  EXPECT_THAT(run.train_loss(), IsNan());
  EXPECT_THAT(diagnose(run).sentences, Contains(HasSubstr("no summary since it was resumed")));
  const auto lock = base::LockFile::try_lock(path + "/.lock");
  EXPECT_EQ(read_run(path).state, RunState::running);
}

TEST_F(RunRecordTest, MonitorsThatWentOnSayThatARunDid) {
  const auto ended = [&](const std::string& time) {
    put_text(path + "/summary.json", fmt::format(R"({{"steps": 200, "ended": "{}"}})", time));
    return read_run(path).state;
  };
  EXPECT_EQ(ended("2026-11-16T00:00:01Z"), RunState::ended);
  EXPECT_EQ(ended("2026-11-15T23:59:50Z"), RunState::broken);  // kMonitorCsv is from midnight
  EXPECT_EQ(ended("yesterday"), RunState::ended);
}

TEST_F(RunRecordTest, CopiesOfARunHaveEndedWhicheverFileWasCopiedFirst) {
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(path + "/summary.json", now - std::chrono::seconds(2));
  fs::last_write_time(path + "/steps.csv", now);
  EXPECT_EQ(read_run(path).state, RunState::ended);
  fs::last_write_time(path + "/summary.json", now - std::chrono::minutes(2));
  EXPECT_EQ(read_run(path).state, RunState::broken);
}

TEST_F(RunRecordTest, WhatTheLauncherWroteIsRead) {
  put_text(path + "/launch.yaml", "workers: 2\nps: 1\nlayout: \"WW,P\"\ncpu_quota: 0.2\n");
  put_text(path + "/throttling.json",
           R"({"worker:1": {"periods": 40, "throttled_periods": 30, "throttled_seconds": 0.3}, "ps:0": 3})");
  const RunRecord run = read_run(path);
  EXPECT_EQ(run.setting("cpu_quota"), "0.2");
  EXPECT_EQ(run.setting("layout"), "WW,P");
  ASSERT_EQ(run.throttling.size(), 1);
  EXPECT_EQ(run.throttling.at("worker:1").seconds, 0.3);
  EXPECT_EQ(diagnose(run).cause, "quota");
  put_text(path + "/throttling.json", "{");
  EXPECT_THAT(read_run(path).warnings, ElementsAre(HasSubstr("throttling.json: not a JSON object")));
}

TEST_F(RunRecordTest, NodesAndFaultsOfAnEmulatedClusterAreRead) {
  put_text(path + "/nodes.json",
           R"([{"node": "node1", "address": "10.77.0.1", "cores": 0.5, "memory_bytes": 0, "rate": 1e9,
                "delay_seconds": 0.001, "loss": 0.25, "roles": ["ps:0", "worker:0"], "throttled_seconds": 2.5},
               {"node": "node2", "roles": "none"}, {"cores": 1}, 7])");
  put_text(path + "/faults.jsonl",
           "{\"seconds\": 3.5, \"time\": 1.7e9, \"fault\": \"cut node2 for 1s\"}\n\n7\n"
           "{\"seconds\": 4.5, \"fault\": \"node2 is back\"}\n{\"seconds\": 9, \"fau");
  const RunRecord run = read_run(path);
  ASSERT_EQ(run.nodes.size(), 2);
  EXPECT_EQ(run.nodes[0].address, "10.77.0.1");
  EXPECT_EQ(run.nodes[0].cores, 0.5);
  EXPECT_EQ(run.nodes[0].memory_bytes, 0);
  EXPECT_EQ(run.nodes[0].rate, 1e9);
  EXPECT_EQ(run.nodes[0].delay_seconds, 0.001);
  EXPECT_EQ(run.nodes[0].loss, 0.25);
  EXPECT_THAT(run.nodes[0].roles, ElementsAre("ps:0", "worker:0"));
  EXPECT_EQ(run.nodes[0].throttled_seconds, 2.5);
  EXPECT_EQ(run.nodes[1].name, "node2");
  EXPECT_FALSE(known(run.nodes[1].cores));
  ASSERT_EQ(run.faults.size(), 2);
  EXPECT_EQ(run.faults[0].seconds, 3.5);
  EXPECT_EQ(run.faults[1].text, "node2 is back");
  EXPECT_THAT(run.warnings, IsEmpty());
  put_text(path + "/nodes.json", "{");
  EXPECT_THAT(read_run(path).warnings, ElementsAre(HasSubstr("nodes.json: not a JSON list")));
}

TEST_F(RunRecordTest, ARunThatIsLockedStillTrains) {
  fs::remove(path + "/summary.json");
  const auto lock = base::LockFile::try_lock(path + "/.lock");
  ASSERT_TRUE(lock);
  EXPECT_EQ(read_run(path).state, RunState::running);
}

TEST_F(RunRecordTest, AnOlderRunHasNoNewFilesAndThatIsNoProblem) {
  for (const char* file : {"phases.csv", "monitor.csv", "worker-1/phases.csv", "worker-1/monitor.csv",
                           "worker-1/summary.json", "ps-0/summary.json"}) {
    fs::remove(path + "/" + file);
  }
  put_text(path + "/summary.json", R"({"model": "lr", "steps": 200, "seconds": 0.5, "workers": null})");
  const RunRecord run = read_run(path);
  EXPECT_THAT(run.warnings, IsEmpty());
  EXPECT_THAT(run.chief().phases, IsEmpty());
  EXPECT_THAT(run.chief().resources, IsEmpty());
  EXPECT_EQ(run.workers(), 2);
}

TEST_F(RunRecordTest, BracketsWithoutEndAreDamage) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  put_text(path + "/summary.json", R"({"workers": [{"role": )" + deep + "}]}");
  EXPECT_THAT(read_run(path).warnings,
              ElementsAre(AllOf(HasSubstr("lr-7/summary.json: "), HasSubstr("nested deeper than 64 levels"))));
}

TEST_F(RunRecordTest, DamagedFilesAreNamedAndTheRestIsRead) {
  put_text(path + "/summary.json", "{\"steps\": 20");
  put_text(path + "/evals.csv", std::string("\0\0\0\n\0", 5));
  put_text(path + "/worker-1/steps.csv", std::string(testing::kStepsCsv) + "garbage\n300,1,0.7,0.5,0.8,0.1,1,1\n");
  put_text(path + "/config.yaml", "model: [\n");
  fs::remove(path + "/worker-1/monitor.csv");
  fs::create_directory(path + "/worker-1/monitor.csv");
  const RunRecord run = read_run(path);
  EXPECT_THAT(run.warnings, Contains(HasSubstr("lr-7/summary.json: not a JSON object")));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("lr-7/evals.csv:1: ")));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("lr-7/worker-1/steps.csv:5: ")));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("lr-7/config.yaml:")));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("lr-7/worker-1/monitor.csv")));
  EXPECT_EQ(run.warnings.size(), 5);
  EXPECT_EQ(run.steps(), 200);
  EXPECT_EQ(run.roles[1].steps.last("step"), 300);
}

TEST_F(RunRecordTest, KeysOfOtherTypesAreNotKnown) {
  put_text(path + "/summary.json",
           R"({"steps": "many", "seconds": 1e300, "model": 5, "workers": [3, {"role": 7, "iterations": []}],
               "phases": [{"phase": "forward", "seconds": -1}, {"seconds": 1}, 3], "resources": [1],
               "stragglers": [1, "a\u001b[31mb", "c\u009b1m\u202ed\u2066e\u00e4"], "communication": 4})");
  const RunRecord run = read_run(path);
  EXPECT_THAT(run.summary().number("steps"), IsNan());
  EXPECT_THAT(run.summary().number("seconds"), IsNan());
  EXPECT_EQ(run.steps(), 200);
  EXPECT_THAT(run.summary().stragglers, ElementsAre("a?[31mb", "c?1m?d?e\xC3\xA4"));
  EXPECT_EQ(run.chief().phase_seconds("forward"), 0.04);
}

TEST_F(RunRecordTest, NumbersBelowZeroAndPhasesNamedTwiceAreNotTaken) {
  put_text(path + "/summary.json",
           R"({"steps": -3, "seconds": -1, "train_loss": -2.5, "workers": [{"role": "worker:0", "iterations": -1}],
               "phases": [{"phase": "forward", "seconds": 1, "count": -4}, {"phase": "forward", "seconds": 5}]})");
  const RunRecord run = read_run(path);
  EXPECT_EQ(run.steps(), 200);
  EXPECT_EQ(run.seconds(), 0.5);
  EXPECT_EQ(run.train_loss(), -2.5);
  EXPECT_THAT(run.worker("worker:0")->iterations, IsNan());
  ASSERT_EQ(run.chief().phases.size(), 1);
  EXPECT_EQ(run.chief().all_phase_seconds(), 1);
  EXPECT_THAT(run.chief().phases[0].count, IsNan());
}

TEST_F(RunRecordTest, TheMostMemoryIsThatOfTheKernelOrTheSamples) {
  RoleRecord role;
  role.summary.numbers["peak_memory_bytes"] = 5;
  EXPECT_EQ(role.peak_memory(), 5);
  role.resources["rss_bytes"].max = 7;
  EXPECT_EQ(role.peak_memory(), 7);
  role.resources["peak_rss_bytes"].max = 9;
  EXPECT_EQ(role.peak_memory(), 9);
}

TEST_F(RunRecordTest, AFolderThatIsNoRunIsSaid) {
  EXPECT_THAT(message_of<UsageError>([&] { (void)read_run(folder.path()); }), HasSubstr("it has no config.yaml"));
  EXPECT_THAT(message_of<UsageError>([&] { (void)newest_run(path + "/ps-0"); }), HasSubstr("no run in '"));
  EXPECT_THAT(message_of<UsageError>([&] { (void)newest_run(folder / "nowhere"); }), HasSubstr("no run in '"));
}

TEST_F(RunRecordTest, TheNewestRunIsTheOneWrittenToLast) {
  write_cluster_run(folder / "lr-8");
  fs::create_directory(folder / "zzz");
  const auto later = fs::file_time_type::clock::now() + std::chrono::hours(1);
  fs::last_write_time(path + "/steps.csv", later);
  EXPECT_EQ(newest_run(folder.path()), path);
  fs::last_write_time(folder / "lr-8/summary.json", later + std::chrono::hours(1));
  EXPECT_EQ(newest_run(folder.path()), folder / "lr-8");
}

// Every file of a run, cut at every few bytes, gives a record and at most warnings.
TEST_F(RunRecordTest, FilesCutAnywhereGiveARecord) {
  for (const char* file : {"summary.json", "steps.csv", "phases.csv", "monitor.csv", "config.yaml", "cluster.yaml"}) {
    const std::string whole = get_file(path + "/" + file);
    for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 25) {
      put_text(path + "/" + file, whole.substr(0, length));
      const RunRecord run = read_run(path);
      EXPECT_GE(run.roles.size(), 3);
      EXPECT_FALSE(diagnose(run).headline.empty());
    }
    put_text(path + "/" + file, whole);
  }
}

}  // namespace
}  // namespace lockstep::records
