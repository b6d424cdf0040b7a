#include "cluster/find_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "cluster/cluster_file.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

const Environment kTfConfig{
    {"TF_CONFIG", R"({"cluster":{"worker":["a:1","b:1"],"ps":["c:1"]},"task":{"type":"worker","index":1}})"}};
const Environment kSlurm{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}, {"SLURM_STEP_NODELIST", "n[1-3]"}};

class FindCluster : public ::testing::Test {
 protected:
  FindCluster() {
    const std::string text = "worker: [a:1, b:1]\nps: [c:1]\n";
    testing::put_file(file_, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  static std::string error_of(const ClusterRequest& request, const Environment& environment) {
    return message_of<UsageError>([&] { find_cluster(request, environment); });
  }

  testing::TempDir folder_;
  std::string file_ = folder_ / "c.yaml";
  ClusterRequest request_;
};

TEST_F(FindCluster, NothingGivenIsNoCluster) {
  EXPECT_FALSE(find_cluster(request_, {}));
  EXPECT_FALSE(find_cluster(request_, {{"TF_CONFIG", ""}}));
  EXPECT_FALSE(find_cluster(request_, {{"TF_CONFIG", "{}"}}));
  request_.workers = 3;
  EXPECT_FALSE(find_cluster(request_, {}));
}

TEST_F(FindCluster, AFileWithATask) {
  request_.cluster = file_;
  request_.task = "worker:1";
  for (const Environment& environment : {Environment{}, kSlurm}) {
    const auto found = find_cluster(request_, environment);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->source, Source::file);
    EXPECT_EQ(found->from, file_);
    EXPECT_EQ(found->task, (Task{Role::worker, 1}));
    EXPECT_EQ(found->spec.address(found->task), "b:1");
  }
}

TEST_F(FindCluster, AFileWithRanks) {
  request_.cluster = file_;
  const auto found = find_cluster(request_, kSlurm);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->task, (Task{Role::worker, 0}));
  EXPECT_EQ(found->from, file_ + " and Slurm");
  Environment more = kSlurm;
  more["SLURM_NTASKS"] = "4";
  more["SLURM_STEP_NODELIST"] = "n[1-4]";
  EXPECT_THAT(error_of(request_, more), HasSubstr("has 3 tasks and Slurm started 4 ranks"));
}

TEST_F(FindCluster, TfConfig) {
  const auto found = find_cluster(request_, kTfConfig);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, Source::tf_config);
  EXPECT_EQ(found->from, "TF_CONFIG");
  EXPECT_EQ(found->task, (Task{Role::worker, 1}));
}

TEST_F(FindCluster, TfConfigGoesBeforeRanks) {
  Environment both = kSlurm;
  both.insert(kTfConfig.begin(), kTfConfig.end());
  EXPECT_EQ(find_cluster(request_, both)->source, Source::tf_config);
}

TEST_F(FindCluster, ATaskCompletesTfConfig) {
  const Environment without{{"TF_CONFIG", R"({"cluster":{"worker":["a:1"],"ps":["c:1"]}})"}};
  EXPECT_THAT(error_of(request_, without),
              AllOf(HasSubstr("TF_CONFIG: task: is missing"), HasSubstr("ps:0, worker:0"), HasSubstr("{\"type\"")));
  request_.task = "ps:0";
  EXPECT_EQ(find_cluster(request_, without)->task, (Task{Role::ps, 0}));
  request_.task = "evaluator:0";
  EXPECT_EQ(find_cluster(request_, without)->spec.evaluator.size(), 1U);
}

TEST_F(FindCluster, RanksAreWorkersOfAnAllReduce) {
  const auto found = find_cluster(request_, kSlurm);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, Source::ranks);
  EXPECT_EQ(found->from, "Slurm");
  EXPECT_TRUE(found->by_rank);
  EXPECT_EQ(found->task, (Task{Role::worker, 1}));
  EXPECT_EQ(found->spec.workers.size(), 3U);
  EXPECT_TRUE(found->spec.ps.empty());
  request_.workers = 3;
  EXPECT_EQ(find_cluster(request_, kSlurm)->spec.workers.size(), 3U);
  request_.workers = 4;
  EXPECT_THAT(error_of(request_, kSlurm), HasSubstr("--workers: 4 are 4 processes, and Slurm started 3"));
}

TEST_F(FindCluster, TheLastRankIsTheEvaluator) {
  request_.evaluator = true;
  const auto found = find_cluster(request_, kSlurm);
  EXPECT_EQ(found->task, (Task{Role::worker, 1}));
  EXPECT_EQ(found->spec.workers.size(), 2U);
  EXPECT_EQ(found->spec.evaluator.size(), 1U);
}

TEST_F(FindCluster, WithServersTheFirstRanksAreThose) {
  request_.ps = 1;
  const auto found = find_cluster(request_, kSlurm);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->task, (Task{Role::worker, 0}));
  EXPECT_EQ(found->spec.ps.size(), 1U);
  request_.workers = 2;
  EXPECT_EQ(find_cluster(request_, kSlurm)->spec.workers.size(), 2U);
  request_.workers = 3;
  EXPECT_THAT(error_of(request_, kSlurm), HasSubstr("--workers: 3 with 1 ps are 4 processes, and Slurm started 3"));
}

TEST_F(FindCluster, AClusterWithoutServersIsOne) {
  const Environment workers{
      {"TF_CONFIG", R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":1}})"}};
  EXPECT_EQ(find_cluster(request_, workers)->spec.workers.size(), 2U);
  const Environment chief{
      {"TF_CONFIG", R"({"cluster":{"chief":["a:1"],"worker":["b:1"]},"task":{"type":"chief","index":0}})"}};
  EXPECT_EQ(find_cluster(request_, chief)->spec.members().size(), 2U);
  const std::string text = "worker: [a:1, b:1]\n";
  testing::put_file(file_, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  request_.cluster = file_;
  request_.task = "worker:0";
  EXPECT_TRUE(find_cluster(request_, {})->spec.ps.empty());
}

const Environment kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_RANK", "1"}};

TEST_F(FindCluster, TheRanksOfMpiUseIt) {
  EXPECT_EQ(choose_engine(Engine::automatic, *find_cluster(request_, kOpenMpi), kOpenMpi), Engine::mpi);
  EXPECT_EQ(choose_engine(Engine::mpi, *find_cluster(request_, kOpenMpi), kOpenMpi), Engine::mpi);
  Environment pmix = kSlurm;
  pmix["PMIX_RANK"] = "1";
  EXPECT_EQ(choose_engine(Engine::automatic, *find_cluster(request_, pmix), pmix), Engine::mpi);
  EXPECT_EQ(choose_engine(Engine::gloo, *find_cluster(request_, pmix), pmix), Engine::gloo);
}

TEST_F(FindCluster, OthersUseGloo) {
  EXPECT_EQ(choose_engine(Engine::automatic, *find_cluster(request_, kSlurm), kSlurm), Engine::gloo);
  Environment both = kOpenMpi;
  both.insert(kTfConfig.begin(), kTfConfig.end());
  EXPECT_EQ(choose_engine(Engine::automatic, *find_cluster(request_, both), both), Engine::gloo);
  request_.evaluator = true;
  Environment pmix = kSlurm;
  pmix["PMIX_RANK"] = "1";
  EXPECT_EQ(choose_engine(Engine::automatic, *find_cluster(request_, pmix), pmix), Engine::gloo);
}

TEST_F(FindCluster, AnEngineThatCannotBeIsRefused) {
  const auto said = [&](Engine wanted, const Environment& environment) {
    return message_of<UsageError>([&] { choose_engine(wanted, *find_cluster(request_, environment), environment); });
  };
  EXPECT_THAT(said(Engine::mpi, kSlurm), HasSubstr("this process is not one"));
  EXPECT_THAT(said(Engine::mpi, kTfConfig), HasSubstr("this process is not one"));
  EXPECT_THAT(said(Engine::in_process, kSlurm), HasSubstr("--replicas"));
  EXPECT_THAT(said(Engine::gloo, kOpenMpi), HasSubstr("Open MPI does not say where they run"));
  request_.evaluator = true;
  EXPECT_THAT(said(Engine::mpi, kOpenMpi), HasSubstr("no place for an evaluator"));
}

/// Returns the blocks of a page between ```LANGUAGE and ```.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> found;
  const std::string opening = "\n```" + language + "\n";
  for (size_t at = page.find(opening); at != std::string::npos; at = page.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    found.push_back(page.substr(begin, page.find("\n```", begin) + 1 - begin));
  }
  return found;
}

TEST(ClusterSpecPage, ItsExamplesAreRead) {
  const std::string page = testing::get_file(LOCKSTEP_SOURCE_DIR "/docs/cluster-spec.md");
  int files = 0;
  for (const std::string& block : blocks(page, "yaml")) {
    if (!block.starts_with("# cluster.yaml")) continue;
    EXPECT_FALSE(parse_cluster_file(block, "cluster.yaml").nodes.empty()) << block;
    ++files;
  }
  EXPECT_EQ(files, 3);
  const std::vector<std::string> configs = blocks(page, "json");
  ASSERT_EQ(configs.size(), 1U);
  EXPECT_EQ(find_cluster({}, {{"TF_CONFIG", configs[0]}})->task, (Task{Role::worker, 1}));
}

TEST_F(FindCluster, ContradictionsAreErrors) {
  const auto said = [&](auto change, const Environment& environment) {
    ClusterRequest request;
    change(request);
    return error_of(request, environment);
  };
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_; }, kTfConfig), HasSubstr("TF_CONFIG is set"));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_; }, {}), HasSubstr("needs --task"));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_, r.task = "worker:2"; }, {}),
              AllOf(HasSubstr("--task: worker:2 is not in"), HasSubstr("ps:0, worker:0 to worker:1")));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_, r.task = "chief:0"; }, {}), HasSubstr("chief:0 is not in"));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_, r.task = "wroker:0"; }, {}), HasSubstr("--task: 'wroker:0'"));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_, r.workers = 2; }, {}), HasSubstr("--workers: 2"));
  EXPECT_THAT(said([&](auto& r) { r.cluster = file_, r.layout = "PW"; }, {}), HasSubstr("--layout: 'PW'"));
  EXPECT_THAT(said([&](auto& r) { r.task = "worker:0"; }, {}), HasSubstr("needs --cluster FILE"));
  EXPECT_THAT(said([&](auto& r) { r.task = "worker:0"; }, kTfConfig), HasSubstr("contradict"));
  EXPECT_THAT(said([&](auto& r) { r.workers = 2; }, kTfConfig), HasSubstr("--workers: 2"));
  EXPECT_THAT(said([&](auto& r) { r.layout = "PW-W"; }, kSlurm), HasSubstr("--layout: 'PW-W'"));
  EXPECT_THAT(said([](auto&) {}, {{"TF_CONFIG", "{"}}), HasSubstr("TF_CONFIG: is not valid JSON"));
}

}  // namespace
}  // namespace lockstep::cluster
