// The cluster that each role of a foreign program is told.
#include "guest/role_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockstep::testing {
namespace {

using nlohmann::json;

guest::Places places_of(const std::string& layout) {
  guest::Places places;
  places.cluster = cluster::local_cluster({.workers = 0, .layout = layout, .network = "10.77.0"});
  places.one_host = false;
  places.master_host = places.cluster.nodes[guest::node_of(places, places.cluster.spec.chief_task())].host;
  places.master_port = 29500;
  return places;
}

std::string value(const guest::Values& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
  return found == values.end() ? "absent" : found->second;
}

TEST(RoleEnvironment, TfConfigNamesEveryRoleAndTheOwnOne) {
  const json config = json::parse(guest::tf_config(places_of("PW-W"), {cluster::Role::worker, 1}));
  EXPECT_EQ(config["cluster"]["ps"], json({"10.77.0.1:4000"}));
  EXPECT_EQ(config["cluster"]["worker"], json({"10.77.0.1:4001", "10.77.0.2:4000"}));
  EXPECT_EQ(config["task"], json({{"type", "worker"}, {"index", 1}}));
}

TEST(RoleEnvironment, RankVariablesAreThoseOfTorchrun) {
  const guest::Places places = places_of("P-WW-W");
  const guest::Values last = guest::environment_of(places, {cluster::Role::worker, 2});
  EXPECT_EQ(value(last, "RANK"), "2");
  EXPECT_EQ(value(last, "WORLD_SIZE"), "3");
  EXPECT_EQ(value(last, "LOCAL_RANK"), "0");
  EXPECT_EQ(value(last, "MASTER_ADDR"), "10.77.0.2");
  EXPECT_EQ(value(last, "MASTER_PORT"), "29500");
  const guest::Values second = guest::environment_of(places, {cluster::Role::worker, 1});
  EXPECT_EQ(value(second, "LOCAL_RANK"), "1");
  EXPECT_EQ(value(second, "LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(value(guest::environment_of(places, {cluster::Role::ps, 0}), "RANK"), "") << "a server has no rank";
  EXPECT_EQ(guest::hosts_text(places), "10.77.0.2 slots=2\n10.77.0.3 slots=1\n");
}

TEST(RoleEnvironment, OneProcessIsAWorldOfItsOwn) {
  const guest::Places places;
  const guest::Values values = guest::environment_of(places, {});
  EXPECT_EQ(value(values, "TF_CONFIG"), "");
  EXPECT_EQ(value(values, "WORLD_SIZE"), "1");
  EXPECT_EQ(value(guest::names_of(places, {}, "runs/x"), "run_dir"), "runs/x");
}

}  // namespace
}  // namespace lockstep::testing
