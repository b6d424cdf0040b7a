// Members with keys. Separate from the others, because the thread sanitizer does not see OpenSSL's synchronisation.
#include "allreduce/elastic_support.h"
#include "base/temp_dir.h"
#include "cluster/keys.h"

namespace lockstep::allreduce {
namespace {

using testing::Cluster;

/// Each member with a key for its own role.
void make_keys(const lockstep::testing::TempDir& folder, int members) {
  for (int i = 0; i < members; ++i) {
    cluster::make_node_keys(folder / "keys", "n" + std::to_string(i), {{cluster::Role::worker, i}});
  }
}

void use_keys(const lockstep::testing::TempDir& folder, ElasticOptions& options) {
  options.security = {folder / "keys/n" + std::to_string(options.task.index), options.task.str()};
}

TEST_F(Cluster, WithKeysTrains) {
  const lockstep::testing::TempDir folder;
  make_keys(folder, 2);
  make(2);
  change = [&](ElasticOptions& o) { use_keys(folder, o); };
  start_all();
  EXPECT_TRUE(trains({0, 1}));
}

TEST_F(Cluster, WithKeysRefusesStrangersAndImpostors) {
  const lockstep::testing::TempDir folder;
  make_keys(folder, 3);
  make(2);
  change = [&](ElasticOptions& o) { use_keys(folder, o); };
  start(0);
  ElasticOptions without = options(1);
  without.security = {};
  without.patience = 1;
  EXPECT_FALSE(ask_run_name(without).ok());
  ElasticOptions impostor = options(1);
  impostor.security = {folder / "keys/n2"};
  const base::Result<std::string> name = ask_run_name(impostor);
  ASSERT_FALSE(name.ok());
  EXPECT_NE(name.failure().message().find("it claims to be worker:1: its certificate (CN=n2 for worker:2) is not for"),
            std::string::npos)
      << name.failure().message();
  start(1);
  EXPECT_TRUE(trains({0, 1}));
}

TEST_F(Cluster, OfManyWithKeysTrainsAndTakesNoImpostorAsNeighbour) {
  const lockstep::testing::TempDir folder;
  make_keys(folder, 9);
  make(9);
  std::vector<int> honest;
  for (int member = 0; member < 8; ++member) honest.push_back(member);
  change = [&](ElasticOptions& o) {
    use_keys(folder, o);
    o.start_wait = o.task.index == 8 ? 60 : 1;
    if (o.task.index == 8) o.security = {folder / "keys/n3"};
  };
  start_all();
  EXPECT_TRUE(trains(honest));
  EXPECT_TRUE(testing::eventually([&] {
    // Its parent, or any other that it tries.
    return std::any_of(honest.begin(), honest.end(), [&](int member) {
      return at(member).lines.has("it claims to be worker:8: its certificate (CN=n3 for worker:3) is not for");
    });
  }));
  EXPECT_EQ(at(0).group(), honest);
}

}  // namespace
}  // namespace lockstep::allreduce
