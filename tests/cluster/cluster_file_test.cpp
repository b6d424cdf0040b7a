#include "cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::message_of;
using ::testing::HasSubstr;

ClusterFile read(const std::string& text) { return parse_cluster_file(text, "c.yaml"); }
std::string error_of(const std::string& text) {
  return message_of<UsageError>([&] { read(text); });
}
std::string text_of(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks) text += (text.empty() ? "" : " ") + task.str();
  return text;
}

TEST(ClusterFile, ListsOfAddresses) {
  const ClusterFile file =
      read("chief: [a:4000]\nworker:\n  - b:4000\n  - '[::1]:4000'\nps: [a:4001]\nevaluator: [b:4001]\n");
  EXPECT_EQ(file.spec, (Spec{{"a:4000"}, {"b:4000", "[::1]:4000"}, {"a:4001"}, {"b:4001"}}));
  ASSERT_EQ(file.nodes.size(), 3U);
  EXPECT_EQ(file.nodes[0].host, "a");
  EXPECT_EQ(file.nodes[0].ssh, "a");
  EXPECT_EQ(text_of(file.nodes[0].tasks), "chief:0 ps:0");
  EXPECT_EQ(text_of(file.nodes[1].tasks), "worker:0 evaluator:0");
  EXPECT_EQ(file.nodes[2].host, "::1");
}

TEST(ClusterFile, Nodes) {
  const ClusterFile file = read(R"(
port: 5000
nodes:
  - host: a
    roles: [ps, worker]
    ssh: me@a.example
    dir: /data/runs
  - {host: b, roles: worker, port: 7000}
  - {host: '::1', roles: [worker, evaluator]}
  - {host: a, roles: [worker]}
)");
  EXPECT_EQ(file.spec, (Spec{{}, {"a:5001", "b:7000", "[::1]:5000", "a:5002"}, {"a:5000"}, {"[::1]:5001"}}));
  ASSERT_EQ(file.nodes.size(), 4U);
  EXPECT_EQ(file.nodes[0].ssh, "me@a.example");
  EXPECT_EQ(file.nodes[0].dir, "/data/runs");
  EXPECT_EQ(text_of(file.nodes[0].tasks), "ps:0 worker:0");
  EXPECT_EQ(text_of(file.nodes[3].tasks), "worker:3");
}

TEST(ClusterFile, TheLayoutsOfTheStudies) {
  EXPECT_EQ(read("layout: PS-W-W\nhosts: [a, b, c]\n").spec, (Spec{{}, {"b:4000", "c:4000"}, {"a:4000"}, {}}));
  EXPECT_EQ(read("layout: PW-PW\nhosts: [a, b]\n").spec, (Spec{{}, {"a:4001", "b:4001"}, {"a:4000", "b:4000"}, {}}));
  EXPECT_EQ(read("layout: PW-W\nhosts: [a, b]\nport: 80\n").spec, (Spec{{}, {"a:81", "b:80"}, {"a:80"}, {}}));
  EXPECT_EQ(read("layout: PSPSC-WE\nhosts: [a, b]\n").spec,
            (Spec{{"a:4002"}, {"b:4000"}, {"a:4000", "a:4001"}, {"b:4001"}}));
  EXPECT_EQ(read("layout: P-W\nhosts: [a, a]\n").spec, (Spec{{}, {"a:4001"}, {"a:4000"}, {}}));
}

TEST(ClusterFile, AnErrorNamesFileLineKeyAndValue) {
  EXPECT_EQ(error_of("ps: [a:1]\nworker:\n  - b:1\n  - c\n"),
            "c.yaml:4:5: worker[1]: 'c' has no port; an address is HOST:PORT, for IPv6 [HOST]:PORT");
  EXPECT_EQ(error_of("ps: [a:1]\nworkers: [b:1]\n"), "c.yaml:2:1: unknown key 'workers' (did you mean 'worker'?)");
  EXPECT_EQ(error_of("layout: PW-X\nhosts: [a, b]\n").substr(0, 58),
            "c.yaml:1:9: layout: 'PW-X' has a letter that is not a role");
  EXPECT_THAT(error_of("nodes:\n  - host: a\n    roles: [ps, wrker]\n"),
              HasSubstr("c.yaml:3:17: nodes[0].roles: 'wrker' is not a role (did you mean 'worker'?)"));
  EXPECT_THAT(error_of("ps: [a:1]\nworker: [b:1, A:1]\n"),
              HasSubstr("c.yaml:2:15: worker[1]: 'A:1' is the address of ps:0"));
}

TEST(ClusterFile, WhatIsWrongIsRefused) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "is empty"},
      {"- a\n", "not a list"},
      {"a: [", "not valid YAML"},
      {"worker: a:1\n", "worker: 'a:1' is not a list"},
      {"worker: [[a:1]]\n", "worker[0]: a list is not an address"},
      {"ps: [a:1]\n", "c.yaml: no member trains"},
      {"ps: [a:1]\nworker:\n", "no member trains"},
      {"chief: [a:1, b:1]\n", "at most one chief"},
      {"chief: [a:1]\nmaster: [b:1]\n", "one role"},
      {"worker: [a:1]\nport: 7\n", "key 'port' does not go with lists of addresses"},
      {"worker: [a:1]\nnodes: []\n", "key 'worker' does not go with `nodes:`"},
      {"layout: W\nhosts: [a]\nps: [a:1]\n", "key 'ps' does not go with `layout:`"},
      {"worker: [a:1]\nworker: [b:1]\n", "is repeated"},
      {"worker: &x [a:1]\nps: *x\n", "anchors"},
      {"nodes: a\n", "nodes: 'a' is not a list"},
      {"nodes: [a]\n", "nodes[0]: 'a' is not {host"},
      {"nodes: [{roles: [ps]}]\n", "nodes[0]: has no 'host'"},
      {"nodes: [{host: a}]\n", "nodes[0]: has no 'roles'"},
      {"nodes: [{host: a, roles: []}]\n", "nodes[0].roles: is empty"},
      {"nodes: [{host: a, role: ps}]\n", "nodes[0]: unknown key 'role' (did you mean 'roles'?)"},
      {"nodes: [{host: 'a:1', roles: ps}]\n", "nodes[0].host: 'a:1' is not a host"},
      {"nodes: [{host: a, roles: worker, port: 70000}]\n", "nodes[0].port: '70000' is not a port"},
      {"nodes: [{host: a, roles: [worker, worker], port: 65535}]\n", "no port left"},
      {"nodes: [{host: a, roles: worker, ssh: -oProxyCommand=x}]\n", "is not user@host"},
      {"nodes: [{host: a, roles: worker, ssh: 'a b'}]\n", "is not user@host"},
      {"nodes: []\n", "no member trains"},
      {"layout: W-W\nhosts: [a]\n", "hosts: has 1 and layout 'W-W' has 2 groups"},
      {"layout: W\n", "layout: needs `hosts:"},
      {"layout: [W]\nhosts: [a]\n", "layout: a list is not a layout"},
      {"layout: W--W\nhosts: [a, b]\n", "empty group"},
      {"layout: W-\nhosts: [a, b]\n", "empty group"},
      {"layout: SW\nhosts: [a]\n", "not a role"},
      {"layout: CCW\nhosts: [a]\n", "at most one chief"},
      {"layout: W\nhosts: [a]\nport: x\n", "port: 'x' is not a port"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

TEST(ClusterFile, IsReadFromDisk) {
  const testing::TempDir folder;
  const std::string text = "worker: [a:1]\nps: [b:1]\n";
  testing::put_file(folder / "c.yaml", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  EXPECT_EQ(load_cluster_file(folder / "c.yaml").spec.ps, std::vector<std::string>{"b:1"});
  EXPECT_THAT(message_of<IoError>([&] { load_cluster_file(folder / "none.yaml"); }), HasSubstr("none.yaml"));
}

TEST(LocalSpec, PortsDifferAndLieBelowThoseOfOutgoingConnections) {
  const Spec spec = local_spec({.workers = 40, .ps = 3, .evaluator = true, .layout = ""});
  EXPECT_EQ(spec.workers.size(), 40U);
  EXPECT_EQ(spec.ps.size(), 3U);
  EXPECT_EQ(spec.evaluator.size(), 1U);
  EXPECT_TRUE(spec.loopback_only());
  EXPECT_FALSE(find_problem(spec));
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int outgoing = 32768;
  range >> outgoing;
  for (const Task& task : spec.tasks()) {
    const base::Address address = base::parse_address(spec.address(task));
    EXPECT_EQ(address.host, "127.0.0.1");
    EXPECT_GE(address.port, 1024);
    EXPECT_TRUE(outgoing < 2024 || address.port < outgoing) << address.port;
  }
}

TEST(LocalSpec, EachNodeOfALayoutHasItsLoopbackAddress) {
  const Spec spec = local_spec({.workers = 2, .ps = 1, .evaluator = true, .layout = "PW-W"});
  EXPECT_EQ(base::parse_address(spec.ps.at(0)).host, "127.0.0.1");
  EXPECT_EQ(base::parse_address(spec.workers.at(0)).host, "127.0.0.1");
  EXPECT_EQ(base::parse_address(spec.workers.at(1)).host, "127.0.0.2");
  EXPECT_EQ(base::parse_address(spec.evaluator.at(0)).host, "127.0.0.2");
}

TEST(LocalSpec, NodesWithANetworkOfTheirOwnHaveItsAddresses) {
  LocalCluster wanted{.workers = 2, .ps = 1, .evaluator = true, .layout = "", .network = "10.77.0"};
  const ClusterFile each = local_cluster(wanted);
  ASSERT_EQ(each.nodes.size(), 3) << "a node for each role";
  EXPECT_EQ(each.spec.ps.at(0), "10.77.0.1:4000");
  EXPECT_EQ(each.spec.workers.at(1), "10.77.0.3:4000");
  EXPECT_EQ(each.spec.evaluator.at(0), "10.77.0.3:4001") << "beside the last one";
  wanted.workers = 0;
  wanted.layout = "PW-PW";
  const ClusterFile two = local_cluster(wanted);
  ASSERT_EQ(two.nodes.size(), 2);
  EXPECT_EQ(two.nodes[1].host, "10.77.0.2");
  const std::vector<Task> second{{Role::ps, 1}, {Role::worker, 1}, {Role::evaluator, 0}};
  EXPECT_EQ(two.nodes[1].tasks, second);
}

TEST(LocalSpec, WhatDoesNotFitIsRefused) {
  const auto said = [](const LocalCluster& wanted) { return message_of<UsageError>([&] { local_spec(wanted); }); };
  EXPECT_THAT(said({.workers = 3, .ps = 1, .evaluator = false, .layout = "PW-W"}),
              HasSubstr("workers: 3 does not fit the layout"));
  EXPECT_THAT(said({.workers = 0, .ps = 1, .evaluator = false, .layout = "P"}), HasSubstr("layout: no member trains"));
  EXPECT_THAT(said({.workers = 0, .ps = 1, .evaluator = false, .layout = "pw"}), HasSubstr("layout: 'pw'"));
  EXPECT_THAT(said({.workers = 0, .ps = 1, .evaluator = false, .layout = ""}), HasSubstr("workers: no member trains"));
}

}  // namespace
}  // namespace lockstep::cluster
