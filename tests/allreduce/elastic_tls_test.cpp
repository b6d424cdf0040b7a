// Members with keys. Apart from the others: the thread sanitizer does not see what OpenSSL does.
#include "allreduce/elastic_support.h"
#include "base/temp_dir.h"
#include "cluster/keys.h"

namespace lockstep::allreduce {
namespace {

using testing::Cluster;

TEST_F(Cluster, WithKeysTrains) {
  const lockstep::testing::TempDir folder;
  cluster::make_keys(folder / "keys", {});
  make(2);
  change = [&](ElasticOptions& o) { o.security.keys = folder / "keys"; };
  start_all();
  EXPECT_TRUE(trains({0, 1}));
}

TEST_F(Cluster, WithKeysRefusesWhoHasNone) {
  const lockstep::testing::TempDir folder;
  cluster::make_keys(folder / "keys", {});
  make(2);
  change = [&](ElasticOptions& o) { o.security.keys = folder / "keys"; };
  start(0);
  ElasticOptions without = options(1);
  without.security.keys.clear();
  without.patience = 1;
  EXPECT_FALSE(ask_run_name(without).ok());
  start(1);
  EXPECT_TRUE(trains({0, 1}));
}

}  // namespace
}  // namespace lockstep::allreduce
