// Values of --emulate and --faults, and the arithmetic of nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "emulate/claims.h"
#include "emulate/cluster.h"
#include "emulate/faults.h"
#include "emulate/owner.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

using emulate::Fault;
using emulate::NodeSpec;
using emulate::parse_faults;
using emulate::parse_nodes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string nodes_error(const std::string& text, size_t nodes = 2) {
  return message_of<UsageError>([&] { parse_nodes(text, nodes); });
}

std::string faults_error(const std::string& text) {
  return message_of<UsageError>([&] { parse_faults(text); });
}

std::string fit_error(const std::vector<double>& cores, double host, double memory = 0) {
  std::vector<NodeSpec> nodes;
  for (const double each : cores) nodes.push_back({.cores = each, .memory_bytes = memory});
  return message_of<UsageError>([&] { emulate::check_fits(nodes, host, 24e9); });
}

TEST(Nodes, WhatIsSaidOfAllIsEachOnesAndOfOneItsOwn) {
  const auto nodes =
      parse_nodes("node2.cores=0.25, cores=0.5,memory=1GB,rate=100Mbit,delay=1ms,loss=0.5%,node3.memory=512MiB", 3);
  ASSERT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes[0].cores, 0.5);
  EXPECT_EQ(nodes[1].cores, 0.25);
  EXPECT_EQ(nodes[0].memory_bytes, 1e9);
  EXPECT_EQ(nodes[2].memory_bytes, 512.0 * 1024 * 1024);
  EXPECT_EQ(nodes[1].rate, 1e8);
  EXPECT_DOUBLE_EQ(nodes[2].delay_seconds, 0.001);
  EXPECT_DOUBLE_EQ(nodes[2].loss, 0.005);
}

TEST(Nodes, OnGivesEqualShares) {
  for (const char* text : {"on", "1", " on "}) {
    auto nodes = parse_nodes(text, 4);
    emulate::check_fits(nodes, 2, 24e9);
    emulate::share_cores(nodes, 2);
    for (const NodeSpec& node : nodes) EXPECT_EQ(node.cores, 0.5);
  }
  auto nodes = parse_nodes("node1.cores=1", 3);
  emulate::share_cores(nodes, 2);
  EXPECT_EQ(nodes[0].cores, 1);
  EXPECT_EQ(nodes[2].cores, 0.5);
}

TEST(Nodes, BadTextNamesThePieceAndWhatIsAllowed) {
  EXPECT_THAT(nodes_error("cores"), HasSubstr("emulate: 'cores': no value; as cores=0.5"));
  EXPECT_THAT(nodes_error(""), HasSubstr("no value"));
  EXPECT_THAT(nodes_error("cores=0.5,"), HasSubstr("no value"));
  EXPECT_THAT(nodes_error("cores=many"), HasSubstr("'cores=many': many is not allowed; 0.01 to 1024"));
  EXPECT_THAT(nodes_error("cores=0"), HasSubstr("0 is not allowed"));
  EXPECT_THAT(nodes_error("cores=nan"), HasSubstr("nan is not allowed"));
  EXPECT_THAT(nodes_error("cores=-1"), HasSubstr("-1 is not allowed"));
  EXPECT_THAT(nodes_error("memory=1"), HasSubstr("from 16MB, as 512MB"));
  EXPECT_THAT(nodes_error("memory=1KB"), HasSubstr("from 16MB"));
  EXPECT_THAT(nodes_error("rate=1gb"), HasSubstr("1gb is not allowed; from 64kbit"));
  EXPECT_THAT(nodes_error("delay="), HasSubstr("nothing is not allowed"));
  EXPECT_THAT(nodes_error("loss=100%"), HasSubstr("up to 90%"));
  EXPECT_THAT(nodes_error("core=1"), HasSubstr("did you mean 'cores'?"));
  EXPECT_THAT(nodes_error("node3.cores=1"), HasSubstr("no node 'node3'; there are node1 to node2"));
  EXPECT_THAT(nodes_error("node0.cores=1", 1), HasSubstr("node1 is the only one"));
  EXPECT_THAT(nodes_error("worker.cores=1"), HasSubstr("no node 'worker'"));
}

TEST(Nodes, MoreThanTheHostHasIsRefusedWithTheArithmetic) {
  EXPECT_EQ(fit_error({0.75, 0.75, 0.75, 0.75}, 2), "emulate: 4 nodes x 0.75 cores = 3 cores, and this machine has 2");
  EXPECT_EQ(fit_error({1, 0.5, 0.75}, 2), "emulate: 1 + 0.5 + 0.75 cores = 2.25 cores, and this machine has 2");
  EXPECT_EQ(fit_error({3}, 2), "emulate: a node of 3 cores, and this machine has 2");
  EXPECT_EQ(fit_error({0.5, 0.5}, 2, 16e9), "emulate: 2 nodes x 16 GB = 32 GB, and this machine has 24");
  EXPECT_THAT(fit_error({2, 0}, 2), HasSubstr("none are left for 1 of the nodes"));
  EXPECT_NO_THROW(emulate::check_fits(std::vector<NodeSpec>(20, {.cores = 0.1}), 2, 24e9));
}

TEST(Nodes, SmallOnesAreKeptToACoreEach) {
  const auto places = [](const std::vector<double>& cores, size_t host) {
    std::vector<NodeSpec> nodes;
    for (const double each : cores) nodes.push_back({.cores = each});
    return emulate::place_on_cores(nodes, host);
  };
  EXPECT_THAT(places({0.5, 0.5}, 2), ElementsAre(0, 1));
  EXPECT_THAT(places({0.5, 0.5, 0.5}, 2), ElementsAre(0, 1, 1)) << "the first is least disturbed";
  EXPECT_THAT(places({0.5, 0.5, 0.5, 0.5}, 2), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(places({1, 0.3, 0.3, 0.4}, 2), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(places({1.5, 0.5}, 2), IsEmpty()) << "more than a core";
  EXPECT_THAT(places({0.6, 0.6, 0.6}, 2), IsEmpty()) << "two of them are more than one";
}

TEST(Nodes, AreKeptToCoresThatOthersLeave) {
  const std::vector<NodeSpec> one{{.cores = 1}};
  EXPECT_THAT(emulate::place_on_cores(one, 2, {1, 0}), ElementsAre(1));
  EXPECT_THAT(emulate::place_on_cores(one, 2, {0.5, 0.5}), IsEmpty());
  const std::vector<NodeSpec> halves(2, {.cores = 0.5});
  EXPECT_THAT(emulate::place_on_cores(halves, 2, {0.5, 0.5}), ElementsAre(0, 1));
}

TEST(Nodes, OfOthersHaveAPartOfEveryCoreWhereTheyAreKeptToNone) {
  using emulate::load_of;
  EXPECT_THAT(load_of({}, {4, 6}), ElementsAre(0, 0));
  EXPECT_THAT(load_of({{7, 0, "a", {{0.5, 0, 6}, {0.25, 0, 5}}}}, {4, 6}), ElementsAre(0, 0.5));
  EXPECT_THAT(load_of({{7, 0, "a", {{1.5, 0, -1}}}, {8, 0, "b", {{0.25, 0, 4}}}}, {4, 6}), ElementsAre(1, 0.75));
  const emulate::Claim lab{.process = 7, .within = 0, .command = "lab", .nodes = {{2, 0, -1}}, .frame = true};
  EXPECT_THAT(load_of({lab, {8, 7, "train", {{1, 0, 4}}}}, {4, 6}), ElementsAre(1, 0)) << "its run counts, once";
}

TEST(Nodes, AreAddedToThoseOfOtherClusters) {
  const std::vector<NodeSpec> nodes(3, {.cores = 0.5, .memory_bytes = 1e9});
  const auto refusal = [&](const std::vector<emulate::Claim>& others, double cores = 2) {
    return message_of<UsageError>([&] { emulate::check_beside(nodes, others, cores, 4e9); });
  };
  EXPECT_NO_THROW(emulate::check_beside(nodes, {}, 1, 1e9)) << "what one alone needs is looked at elsewhere";
  EXPECT_NO_THROW(emulate::check_beside(nodes, {{7, 0, "lockstep train lr", {{0.5, 0, 0}}}}, 2, 4e9));
  EXPECT_EQ(refusal({{7, 0, "lockstep train lr", {{0.5, 0, 0}, {0.25, 0, 1}}}}),
            "emulate: 3 nodes x 0.5 cores = 1.5 cores, and of the 2 cores of this machine other emulated clusters have "
            "0.75: process 7 (lockstep train lr) has 0.75; wait until they have ended, or end them with `kill -INT 7` "
            "(`ip netns` shows the nodes of all)");
  EXPECT_THAT(refusal({{7, 0, "a", {{0.1, 1e9, -1}}}, {8, 0, "b", {{0.1, 1e9, -1}}}}),
              HasSubstr("= 3 GB, and of the 4 GB of this machine other emulated clusters have 2: process 7 (a) has 1, "
                        "process 8 (b) has 1; wait until they have ended, or end them with `kill -INT 7 8`"));
  // A lab's claim includes those of its runs, one after the other.
  EXPECT_THAT(refusal({{7, 0, "lab", {{1, 0, -1}}}, {8, 7, "train", {{1, 0, 0}}}}),
              HasSubstr("have 1: process 7 (lab)"));
}

TEST(Faults, AreReadInTheOrderOfTime) {
  const auto faults = parse_faults(
      "at 90s slow node3 to 25%; at: 30s kill worker:1;at 60s cut node2 for 10s\nat 1m stop ps:0 for 500ms;");
  ASSERT_EQ(faults.size(), 4);
  EXPECT_EQ(faults[0].text(), "kill worker:1");
  EXPECT_EQ(faults[0].at, 30);
  EXPECT_EQ(faults[1].text(), "cut node2 for 10s");
  EXPECT_EQ(faults[1].seconds, 10);
  EXPECT_EQ(faults[2].text(), "stop ps:0 for 0.5s");
  EXPECT_EQ(faults[2].at, 60);
  EXPECT_EQ(faults[3].text(), "slow node3 to 25%");
  EXPECT_EQ(faults[3].share, 0.25);
  EXPECT_TRUE(parse_faults("").empty());
}

TEST(Faults, OfOneKindAndTargetMustFollowEachOther) {
  EXPECT_THAT(faults_error("at 5s cut node2 for 9s; at 1s cut node2 for 10s"),
              HasSubstr("'at 5s cut node2 for 9s' begins before 'at 1s cut node2 for 10s' has ended"));
  EXPECT_EQ(parse_faults("at 1s cut node2 for 4s; at 5s cut node2 for 1s; at 2s cut node1 for 9s").size(), 3U);
  EXPECT_EQ(parse_faults("at 1s cut node2 for 10s; at 2s slow node2 to 50% for 1s").size(), 2U);
}

TEST(Faults, BadTextNamesThePlaceAndWhatIsAllowed) {
  EXPECT_THAT(faults_error("at 3s cut node1; in 3s kill worker:1"),
              HasSubstr("faults: 'in 3s kill worker:1': 'in' in place of 'at'; allowed are 'at 30s kill"));
  EXPECT_THAT(faults_error("at noon kill worker:1"), HasSubstr("'noon' in place of a time"));
  EXPECT_THAT(faults_error("at -1s kill worker:1"), HasSubstr("'-1s' in place of a time"));
  EXPECT_THAT(faults_error("at 3s"), HasSubstr("nothing in place of kill, stop, cut or slow"));
  EXPECT_THAT(faults_error("at 3s burn node1"), HasSubstr("'burn' in place of"));
  EXPECT_THAT(faults_error("at 3s kill node1"), HasSubstr("'node1' in place of a role"));
  EXPECT_THAT(faults_error("at 3s cut worker:1"), HasSubstr("'worker:1' in place of a node"));
  EXPECT_THAT(faults_error("at 3s slow node1"), HasSubstr("nothing in place of 'to'"));
  EXPECT_THAT(faults_error("at 3s slow node1 to 0%"), HasSubstr("'0%' in place of a share"));
  EXPECT_THAT(faults_error("at 3s kill worker:1 for 2s"), HasSubstr("'for' in place of the end"));
  EXPECT_THAT(faults_error("at 3s cut node1 for 2s more"), HasSubstr("'more' in place of the end"));
}

TEST(Owner, IsGoneWhenItsNumberIsAnothers) {
  const std::string mine = emulate::owner_prefix();
  EXPECT_FALSE(emulate::owner_is_gone(mine + "node1"));
  // The same process id with another start time.
  const std::string pid = mine.substr(0, mine.find('-', 9));
  EXPECT_TRUE(emulate::owner_is_gone(pid + "-1-node1"));
  EXPECT_TRUE(emulate::owner_is_gone("lockstep-4194999-1-switch"));
  EXPECT_FALSE(emulate::owner_is_gone("lockstep-4194999-1-p1-switch")) << "a process of another PID namespace";
  EXPECT_FALSE(emulate::owner_is_gone("lockstep-x-1-switch")) << "no name of ours";
  EXPECT_FALSE(emulate::owner_is_gone("others-4194999-1-switch"));
}

}  // namespace
}  // namespace lockstep::testing
