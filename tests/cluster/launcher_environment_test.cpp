#include "cluster/launcher_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Three nodes with 2, 2 and 1 tasks.
Environment slurm(int rank, const Environment& more = {}) {
  Environment environment{{"SLURM_PROCID", std::to_string(rank)},
                          {"SLURM_NTASKS", "5"},
                          {"SLURM_JOB_ID", "77"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NODELIST", "n[1-3]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                          {"LOCKSTEP_PORT", "4000"}};
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

TEST(NodeList, EveryFormIsExpanded) {
  EXPECT_THAT(expand_node_list("node[01-03,7],gpu1"), ElementsAre("node01", "node02", "node03", "node7", "gpu1"));
  EXPECT_THAT(expand_node_list("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_node_list("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(expand_node_list("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(expand_node_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expand_node_list("r[1-2]n[1,3]"), ElementsAre("r1n1", "r1n3", "r2n1", "r2n3"));
  EXPECT_THAT(expand_node_list("n[1-2]-ib,x[5]"), ElementsAre("n1-ib", "n2-ib", "x5"));
  EXPECT_THAT(expand_node_list("n[0-9999]"), SizeIs(10000));
}

TEST(NodeList, AWrongOneIsRefused) {
  for (const char* text : {"",
                           ",",
                           "a,",
                           "n[",
                           "n[1",
                           "n[1-",
                           "n[]",
                           "n[1-]",
                           "n[-1]",
                           "n[3-1]",
                           "n[a]",
                           "n[1,]",
                           "n]1",
                           "n[[1]]",
                           "n[1-99999]",
                           "n[1-9999][1-9999]",
                           "n[99999999999999999999]",
                           "a b",
                           "n[1 2]",
                           "n[+1]",
                           "n[0-9999],m"}) {
    EXPECT_THAT(message_of<UsageError>([&] { expand_node_list(text); }), HasSubstr("node list")) << text;
  }
}

TEST(TaskCounts, EveryFormIsExpanded) {
  EXPECT_THAT(expand_task_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_task_counts("4"), ElementsAre(4));
  EXPECT_THAT(expand_task_counts("1,2,1(x2)"), ElementsAre(1, 2, 1, 1));
  for (const char* text : {"", ",", "2(x", "2(x)", "2(x0)", "x", "2(3)", "-1", "2(x99999)", "2(x3", "99999"}) {
    EXPECT_THAT(message_of<UsageError>([&] { expand_task_counts(text); }), HasSubstr("task counts")) << text;
  }
}

TEST(Slurm, RanksBecomeServersThenWorkersThenTheEvaluator) {
  const auto ranks = find_ranks(slurm(3));
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->launcher, "Slurm");
  EXPECT_EQ(ranks->rank, 3);
  EXPECT_THAT(ranks->hosts, ElementsAre("n1", "n1", "n2", "n2", "n3"));
  EXPECT_EQ(spec_of_ranks(*ranks, 1, false), (Spec{{}, {"n1:4001", "n2:4000", "n2:4001", "n3:4000"}, {"n1:4000"}, {}}));
  EXPECT_EQ(spec_of_ranks(*ranks, 2, true), (Spec{{}, {"n2:4000", "n2:4001"}, {"n1:4000", "n1:4001"}, {"n3:4000"}}));
  EXPECT_EQ(spec_of_ranks(*ranks, 2, true).tasks().at(3), (Task{Role::worker, 1}));
}

TEST(Slurm, AllRanksSeeTheSameCluster) {
  for (int rank = 1; rank < 5; ++rank) {
    EXPECT_EQ(spec_of_ranks(*find_ranks(slurm(rank)), 1, false), spec_of_ranks(*find_ranks(slurm(0)), 1, false));
  }
}

TEST(Slurm, DealsRanksAsItsDistributionSays) {
  EXPECT_THAT(find_ranks(slurm(0, {{"SLURM_DISTRIBUTION", "cyclic"}}))->hosts,
              ElementsAre("n1", "n2", "n3", "n1", "n2"));
  EXPECT_THAT(find_ranks(slurm(0, {{"SLURM_DISTRIBUTION", "block:cyclic"}}))->hosts,
              ElementsAre("n1", "n1", "n2", "n2", "n3"));
  EXPECT_THAT(find_ranks(slurm(0, {{"SLURM_STEP_TASKS_PER_NODE", "3,1,1"},
                                   {"SLURM_DISTRIBUTION", "plane"},
                                   {"SLURM_DIST_PLANESIZE", "2"}}))
                  ->hosts,
              ElementsAre("n1", "n1", "n2", "n3", "n1"));
  EXPECT_THAT(message_of<UsageError>([] {
                find_ranks(slurm(0, {{"SLURM_DISTRIBUTION", "arbitrary"}}));
              }),
              HasSubstr("SLURM_DISTRIBUTION: 'arbitrary'"));
}

TEST(Slurm, NoticesWhenItRunsElsewhereThanTheRuleSays) {
  EXPECT_TRUE(find_ranks(slurm(2, {{"SLURM_NODEID", "1"}})));
  EXPECT_THAT(message_of<UsageError>([] { find_ranks(slurm(2, {{"SLURM_NODEID", "2"}})); }), HasSubstr("SLURM_NODEID"));
}

TEST(Slurm, OneNodeIsLoopback) {
  const auto ranks = find_ranks(slurm(0, {{"SLURM_STEP_NODELIST", "n1"}, {"SLURM_STEP_TASKS_PER_NODE", "5"}}));
  const Spec spec = spec_of_ranks(*ranks, 1, false);
  EXPECT_TRUE(spec.loopback_only());
  EXPECT_EQ(spec.workers.at(3), "127.0.0.1:4004");
}

TEST(Slurm, TheJobsNodeListServesWhereTheStepHasNone) {
  const Environment environment{
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}};
  EXPECT_THAT(find_ranks(environment)->hosts, ElementsAre("a", "b"));
}

TEST(Slurm, TheBatchScriptItselfIsNoRank) {
  Environment environment{{"SLURM_PROCID", "0"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_JOB_NODELIST", "n[1-4]"},
                          {"SLURM_TASKS_PER_NODE", "1(x4)"},
                          {"ENVIRONMENT", "BATCH"}};
  EXPECT_FALSE(find_ranks(environment));
  environment["SLURM_STEP_NODELIST"] = "n[1-4]";
  EXPECT_TRUE(find_ranks(environment));
  environment["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_FALSE(find_ranks(environment));
}

TEST(Slurm, AnErrorNamesTheVariable) {
  const auto said = [](const Environment& more) { return message_of<UsageError>([&] { find_ranks(slurm(0, more)); }); };
  EXPECT_THAT(said({{"SLURM_PROCID", "x"}}), HasSubstr("SLURM_PROCID: 'x' is not a whole number"));
  EXPECT_THAT(said({{"SLURM_PROCID", "5"}}), HasSubstr("SLURM_PROCID: '5' is out of range for 5 ranks"));
  EXPECT_THAT(said({{"SLURM_NTASKS", ""}}), HasSubstr("SLURM_PROCID: is set, and SLURM_STEP_NUM_TASKS"));
  EXPECT_THAT(said({{"SLURM_STEP_NODELIST", "n[1-"}}), HasSubstr("SLURM_STEP_NODELIST: 'n[1-'"));
  EXPECT_THAT(said({{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}}), HasSubstr("places 4 tasks on 2 nodes"));
  EXPECT_THAT(said({{"LOCKSTEP_PORT", "0"}}), HasSubstr("LOCKSTEP_PORT: '0'"));
}

TEST(Slurm, PortsFollowFromTheJob) {
  Environment environment = slurm(0);
  environment.erase("LOCKSTEP_PORT");
  const int port = find_ranks(environment)->first_port;
  EXPECT_GE(port, 20000);
  EXPECT_LT(port, 32000);
  environment["SLURM_PROCID"] = "4";
  EXPECT_EQ(find_ranks(environment)->first_port, port);
  environment["SLURM_JOB_ID"] = "78";
  EXPECT_NE(find_ranks(environment)->first_port, port);
}

TEST(Mpi, OnOneMachineItIsLoopback) {
  const Environment environment{{"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "3"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                {"LOCKSTEP_PORT", "4000"}};
  const auto ranks = find_ranks(environment);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->launcher, "Open MPI");
  EXPECT_EQ(spec_of_ranks(*ranks, 1, false), (Spec{{}, {"127.0.0.1:4001", "127.0.0.1:4002"}, {"127.0.0.1:4000"}, {}}));
}

TEST(Mpi, OnSeveralMachinesServersNeedAFile) {
  const auto ranks = find_ranks({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  ASSERT_TRUE(ranks);
  EXPECT_THAT(message_of<UsageError>([&] { spec_of_ranks(*ranks, 1, false); }), HasSubstr("give --cluster FILE"));
  EXPECT_EQ(spec_of_ranks(*ranks, 0, false), (Spec{{}, {"", "", ""}, {}, {}}));
}

TEST(Mpi, PmiIsRead) {
  const auto ranks = find_ranks({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->rank, 1);
  EXPECT_THAT(ranks->hosts, ElementsAre("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(find_ranks({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}));
}

TEST(Mpi, InsideASlurmJobItsOwnRanksCount) {
  const auto open_mpi = find_ranks(slurm(0, {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}}));
  EXPECT_EQ(open_mpi->launcher, "Open MPI");
  EXPECT_EQ(find_ranks(slurm(0, {{"PMI_RANK", "2"}, {"PMI_SIZE", "9"}}))->size, 9);
  EXPECT_EQ(find_ranks(slurm(2, {{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}}))->launcher, "Slurm");
}

TEST(Ranks, TooFewAreRefused) {
  const auto ranks = find_ranks(slurm(0));
  EXPECT_THAT(message_of<UsageError>([&] { spec_of_ranks(*ranks, 5, false); }),
              HasSubstr("5 ranks are too few for 5 ps"));
  EXPECT_THAT(message_of<UsageError>([&] { spec_of_ranks(*ranks, 4, true); }), HasSubstr("an evaluator"));
}

TEST(Ranks, WithoutALauncherThereAreNone) { EXPECT_FALSE(find_ranks({{"PATH", "/bin"}})); }

TEST(ProcessEnvironment, IsThisOne) {
  ::setenv("LOCKSTEP_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(process_environment().at("LOCKSTEP_TEST_VARIABLE"), "a=b");
}

}  // namespace
}  // namespace lockstep::cluster
