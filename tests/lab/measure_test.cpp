// Fields measured from run folders, with numbers that are easy to follow (records/run_folders.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lab/fields.h"
#include "records/run_folders.h"

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

class Measure : public ::testing::Test {
 protected:
  Measure() { write_cluster_run(run); }
  [[nodiscard]] lab::RunMeasured measured() const { return lab::measure(records::read_run(run)); }
  TempDir folder;
  std::string run = folder / "run";
};

TEST_F(Measure, ResultsAndTimesAreThoseOfTheSummary) {
  const lab::Measured values = measured().values;
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 0.892);
  EXPECT_DOUBLE_EQ(values.at("loss"), 0.42);
  EXPECT_DOUBLE_EQ(values.at("seconds"), 0.55);
  EXPECT_DOUBLE_EQ(values.at("epoch_seconds"), 0.5) << "without what evaluations took";
  EXPECT_DOUBLE_EQ(values.at("step_seconds"), 0.0025);
  EXPECT_DOUBLE_EQ(values.at("steps"), 200);
  EXPECT_DOUBLE_EQ(values.at("iterations"), 400) << "of both workers";
  EXPECT_DOUBLE_EQ(values.at("restarts"), 1);
  EXPECT_DOUBLE_EQ(values.at("finish_spread"), 0);
}

TEST_F(Measure, EachWorkerHasItsOwn) {
  const lab::RunMeasured all = measured();
  ASSERT_EQ(all.roles.size(), 3U);
  EXPECT_EQ(all.roles[1].role, "worker:1");
  EXPECT_EQ(all.roles[1].node, "south");
  EXPECT_DOUBLE_EQ(all.roles[1].values.at("iterations"), 200);
  EXPECT_DOUBLE_EQ(all.roles[1].values.at("process_cpu_percent"), 90) << "of monitor.csv";
  EXPECT_DOUBLE_EQ(all.roles[1].values.at("cpu_percent"), 70);
}

TEST_F(Measure, WireTrafficIsCountedWhereRolesShareANode) {
  put_text(run + "/worker-1/summary.json", R"({"steps": 200, "host": "north", "threads": 1})");
  const lab::RunMeasured all = measured();
  const lab::Measured& worker = all.roles[1].values;
  EXPECT_DOUBLE_EQ(worker.at("network_received"), 2e6);
  EXPECT_DOUBLE_EQ(worker.at("network_per_second"), 3e6);
  EXPECT_DOUBLE_EQ(worker.at("network_per_step"), 3e6 * 1.5 / 200) << "1.5 s of monitoring";
}

// A steep start and uneven places bend a curve without any noise.
TEST_F(Measure, RoughnessIsNoiseAndNotTheCourseOfTheTraining) {
  const auto rough = [&](const std::string& rows) {
    put_text(run + "/evals.csv", "step,loss\n" + rows);
    return measured().values.at("loss_roughness");
  };
  EXPECT_NEAR(rough("0,2.3\n100,0.9\n200,0.8\n250,0.75\n300,0.7\n400,0.6\n430,0.57\n500,0.5\n"), 0, 1e-9);
  EXPECT_NEAR(rough("0,1\n100,1.1\n200,0.9\n300,1.1\n400,0.9\n500,1.1\n600,0.9\n"), 0.2, 1e-9);
}

TEST_F(Measure, InterfacesAreCountedWhereNodesHaveTheirOwn) {
  put_text(run + "/worker-1/monitor.csv",
           "time,seconds,wire_received,wire_sent,net_received,net_sent\n1,0.5,10,20,1000,300\n2,1.0,10,20,3000,500\n");
  const lab::RunMeasured all = measured();
  const lab::Measured& worker = all.roles[1].values;
  EXPECT_DOUBLE_EQ(worker.at("network_received"), 2000);
  EXPECT_DOUBLE_EQ(worker.at("network_sent"), 400);
  EXPECT_DOUBLE_EQ(worker.at("network_per_second"), 2400);
  EXPECT_THAT(all.roles[0].values, Not(Contains(Key("network_received")))) << "its monitor has no net_received";
}

TEST_F(Measure, AServersMeansAreOfTheTimeOfTheTraining) {
  put_text(run + "/ps-0/monitor.csv",
           "time,seconds,cpu_percent,wire_received\n1,0.5,0,0\n2,1.0,10,0\n3,1.5,70,2000\n4,2.0,90,4000\n");
  const lab::Measured values = measured().values;
  EXPECT_DOUBLE_EQ(values.at("ps_cpu_percent"), 80) << "0.55 s of 2 s";
  EXPECT_DOUBLE_EQ(values.at("ps_received"), 3000);
  EXPECT_DOUBLE_EQ(values.at("ps_cpu_max"), 90);
  EXPECT_DOUBLE_EQ(values.at("ps_received_max"), 4000);
}

TEST_F(Measure, PeaksAndMemoryOfNodesAreThoseOfTheMonitor) {
  for (const std::string& place : {run, run + "/worker-1"}) {
    put_text(place + "/monitor.csv",
             "time,seconds,net_received,net_sent,node_memory_used,disk_read,node_disk_read\n"
             "1,0.5,1000,300,7000,0,0\n2,1.0,3000,500,3500,80,160\n");
  }
  put_text(run + "/ps-0/monitor.csv", "time,seconds,net_received,net_sent\n1,0.5,1000,300\n2,1.0,3000,500\n");
  const lab::RunMeasured all = measured();
  const lab::Measured& worker = all.roles[1].values;
  EXPECT_DOUBLE_EQ(worker.at("network_max"), 3500);
  EXPECT_DOUBLE_EQ(worker.at("network_received_max"), 3000);
  EXPECT_DOUBLE_EQ(worker.at("network_sent_max"), 500);
  EXPECT_DOUBLE_EQ(worker.at("node_memory"), 7000);
  EXPECT_DOUBLE_EQ(worker.at("node_memory_drop"), 0.5);
  EXPECT_DOUBLE_EQ(worker.at("disk_read_max"), 80);
  EXPECT_DOUBLE_EQ(worker.at("node_disk_read"), 80);
  EXPECT_DOUBLE_EQ(all.values.at("network_max"), 3500);
  EXPECT_DOUBLE_EQ(all.values.at("server_intake"), 5) << "north receives 2000 B/s, south sends 400 B/s";
}

TEST_F(Measure, NetworkThatComesAndGoesHasAPeriod) {
  std::string monitor = "time,seconds,net_received,net_sent\n";
  for (int i = 1; i <= 40; ++i) monitor += fmt::format("{},{},{},0\n", i, i * 0.5, i % 5 == 0 ? 600 : 100);
  put_text(run + "/worker-1/monitor.csv", monitor);
  const lab::Measured worker = measured().roles[1].values;
  EXPECT_DOUBLE_EQ(worker.at("network_period"), 2.5) << "each fifth sample of 0.5 s";
  EXPECT_NEAR(worker.at("network_variation"), 1.0, 0.03) << "mean 200, deviation 200";
  put_text(run + "/worker-1/monitor.csv", std::string(kMonitorCsv));
  EXPECT_THAT(measured().roles[1].values, Not(Contains(Key("network_period")))) << "too few samples";
}

TEST_F(Measure, ConvergenceIsMostOfTheWayDown) {
  put_text(run + "/evals.csv",
           "step,epoch,seconds,loss,accuracy,examples,eval_seconds,best\n"
           "0,1,0,2.3025851,0.1,1,0,1\n100,1,1,1.3025851,0.5,1,0,1\n200,1,2,0.3025851,0.8,1,0,1\n"
           "300,1,3,0.3025851,0.9,1,0,0\n");
  const lab::Measured values = measured().values;
  put_text(run + "/steps.csv", "step,epoch,seconds,loss\n100,1,1,0.1\n");
  EXPECT_EQ(measured().values.at("converge_steps"), values.at("converge_steps")) << "batches are not asked";
  EXPECT_NEAR(values.at("converge_steps"), 180, 1e-6) << "90 % of the way from 2.30 to 0.30";
  EXPECT_NEAR(values.at("converge_seconds"), 1.8, 1e-6);
  EXPECT_NEAR(values.at("loss_area"), (180.25851 + 80.25851 + 30.25851) / 300, 1e-6);
  EXPECT_NEAR(values.at("accuracy_gain"), 0.8, 1e-9);
  EXPECT_NEAR(values.at("loss_fall"), 2 / 2.3025851, 1e-6);
}

TEST_F(Measure, CurvesAreTheEvaluatorsIfThereIsOne) {
  put_text(run + "/evals.csv", "step,epoch,seconds,loss,accuracy\n200,1,0.51,0.42,0.892\n");
  put_text(run + "/cluster.yaml",
           "worker:\n  - \"127.0.0.1:1\"\n  - \"127.0.0.1:2\"\nps:\n  - \"127.0.0.1:3\"\n"
           "evaluator:\n  - \"127.0.0.1:4\"\n");
  put_text(run + "/evaluator-0/evals.csv",
           "step,epoch,seconds,loss,accuracy\n50,0,1,0.8,0.7\n100,0,2,0.6,0.8\n200,0,3,0.42,0.892\n");
  EXPECT_NEAR(measured().values.at("accuracy_gain"), 0.192, 1e-9) << "the chief evaluates only at the end";
}

TEST_F(Measure, SharesOfStepsAddUpToOne) {
  const lab::Measured values = measured().roles[1].values;
  const double sum = values.at("wait_share") + values.at("share_compute") + values.at("share_exchange") +
                     values.at("share_data") + values.at("share_evaluation") + values.at("share_rest");
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST_F(Measure, WhatIsNotKnownIsAbsent) {
  std::filesystem::remove(run + "/monitor.csv");
  std::filesystem::remove(run + "/worker-1/monitor.csv");
  const lab::Measured values = measured().roles[1].values;
  EXPECT_THAT(values, Not(Contains(Key("cpu_percent"))));
  EXPECT_THAT(values, Contains(Key("iterations")));
}

TEST_F(Measure, EveryMeasuredNameIsInTheTable) {
  const lab::RunMeasured all = measured();
  std::vector<lab::Measured> parts{all.values};
  for (const lab::RoleMeasured& role : all.roles) parts.push_back(role.values);
  for (const lab::Measured& part : parts) {
    for (const auto& [name, value] : part) EXPECT_NE(lab::find_field(name), nullptr) << name;
  }
}

TEST(Fields, NamesAreThereOnce) {
  std::set<std::string_view> names;
  for (const lab::FieldDef& def : lab::fields()) EXPECT_TRUE(names.insert(def.name).second) << def.name;
  EXPECT_EQ(lab::field_hint("acuracy"), " (did you mean 'accuracy'?)");
}

}  // namespace
}  // namespace lockstep::testing
