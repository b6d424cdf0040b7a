// Training by all-reduce with workers started by hand or by a scheduler, in any order, with TF_CONFIG or a file: the
// number of workers, refusals, stragglers.
#include <fmt/format.h>

#include <csignal>
#include <map>
#include <thread>

#include "e2e/all_reduce.h"
#include "transport/streams.h"

namespace lockstep::testing {
namespace {

int free_port() { return transport::Server(transport::testing::any_port(), transport::testing::echo).port(); }
void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

class AllReduceByHand : public AllReduceTest {
 protected:
  void SetUp() override {
    if (engines().size() < 2 || engines()[1] != "gloo") GTEST_SKIP() << "this build has no Gloo";
  }
  void make_cluster(const std::map<std::string, int>& layout, const std::string& host = "127.0.0.1") {
    addresses.clear();
    running.clear();
    for (const auto& [role, count] : layout) {
      for (int i = 0; i < count; ++i) addresses[role].push_back(fmt::format("{}:{}", host, free_port()));
    }
  }
  void start(const std::string& task, const Words& more = {}, const std::string& runs = "runs") {
    const size_t colon = task.find(':');
    const nlohmann::json config{
        {"cluster", addresses},
        {"task", {{"type", task.substr(0, colon)}, {"index", std::stoi(task.substr(colon + 1))}}}};
    ProcessOptions with = options();
    with.environment.emplace_back("TF_CONFIG", config.dump());
    running[task] = std::make_unique<Process>(program_path(), words() + Words{"--runs-dir", runs} + more, with);
  }
  [[nodiscard]] Words words() const { return Words{"train", model, "--batch", "50", "--epochs", "2"} + data(); }
  void expect_all_end(int code = 0) {
    for (auto& [task, process] : running) {
      const Ended ended = process->finish();
      EXPECT_EQ(ended.code, code) << task << ": " << ended.out << ended.err;
    }
  }
  [[nodiscard]] int64_t lines_of(const std::string& file) const {
    const std::string text = get_file(folder / file);
    return std::count(text.begin(), text.end(), '\n');
  }
  /// Waits until a file has this many lines.
  void wait_for_lines(const std::string& file, int64_t lines) const {
    for (int i = 0; i < 6000; ++i) {
      if (lines_of(file) >= lines) return;
      pause(20);
    }
    ADD_FAILURE() << file << " never had " << lines << " lines";
  }

  std::string model = "lr";
  std::map<std::string, std::vector<std::string>> addresses;
  std::map<std::string, std::unique_ptr<Process>> running;
};

TEST_F(AllReduceByHand, TheOrderOfStartingDoesNotMatter) {
  const Result launched = train_together("launched", Words{"lr", "--batch", "50", "--epochs", "2"} + data());
  const std::vector<Words> orders{{"worker:0", "worker:1", "worker:2"}, {"worker:2", "worker:1", "worker:0"}};
  for (size_t i = 0; i < orders.size(); ++i) {
    make_cluster({{"worker", 3}});
    const std::string runs = "runs-" + std::to_string(i);
    for (const std::string& task : orders[i]) {
      start(task, {}, runs);
      pause(700);
    }
    expect_all_end();
    expect_same_bits(launched, result(runs + "/lr-1"));
  }
}

TEST_F(AllReduceByHand, WithAFileATaskAndAChief) {
  make_cluster({{"chief", 1}, {"worker", 2}});
  std::ofstream(folder / "cluster.yaml") << "chief: [" << addresses["chief"][0] << "]\nworker: ["
                                         << addresses["worker"][0] << ", " << addresses["worker"][1] << "]\n";
  for (const char* task : {"worker:1", "chief:0", "worker:0"}) {
    running[task] = std::make_unique<Process>(program_path(),
                                              words() + Words{"--cluster", "cluster.yaml", "--task", task}, options());
  }
  expect_all_end();
  const Result result = this->result("runs/lr-1");
  EXPECT_EQ(result.examples, 1200U);
  EXPECT_EQ(result.summary["workers"][0]["role"], "chief:0");
  EXPECT_EQ(result.summary["strategy"], "allreduce");
}

TEST_F(AllReduceByHand, TlsChangesNoBit) {
  ASSERT_EQ(run({"keys", "new", "keys", "--shared"}).code, 0);
  const Words words = Words{"lr", "--batch", "50", "--epochs", "2"} + data();
  expect_same_bits(train_together("open", words, 2), train_together("closed", words + Words{"--tls", "keys"}, 2));
}

// The number of workers.

TEST_F(AllReduceByHand, EnoughWorkersBeginAndWhoComesLateJoinsThem) {
  make_cluster({{"worker", 3}});
  const Words late{"--epochs", "0", "--steps", "1000000", "--min-workers", "2", "--start-wait", "1"};
  for (const char* task : {"worker:0", "worker:1"}) start(task, late);
  wait_for_lines("runs/lr-1/steps.csv", 20);
  start("worker:2", late);
  wait_for_lines("runs/lr-1/worker-2/steps.csv", 20);
  for (auto& [task, process] : running) process->signal(SIGINT);
  expect_all_end(130);
  const Result result = this->result("runs/lr-1");
  EXPECT_EQ(result.summary["stop_reason"], "interrupted");
  EXPECT_EQ(result.summary["workers"].size(), 3U);
  EXPECT_EQ(result.summary["communication"]["groups"], 2);
  EXPECT_LT(result.summary["workers"][2]["updates"], result.summary["workers"][0]["updates"]);
  EXPECT_EQ(result.losses.size(), 1 + result.steps);
}

TEST_F(AllReduceByHand, MoreThanTheMostWaitOutside) {
  make_cluster({{"worker", 3}});
  const Words two{"--max-workers", "2", "--epochs", "0", "--steps", "1000000000"};
  for (const char* task : {"worker:0", "worker:1"}) start(task, two);
  wait_for_lines("runs/lr-1/worker-1/steps.csv", 2);
  start("worker:2", two);
  wait_for_lines("runs/lr-1/worker-2/config.yaml", 1);  // it knows the others by now
  const int64_t before = lines_of("runs/lr-1/steps.csv");
  wait_for_lines("runs/lr-1/steps.csv", before + 200);
  EXPECT_LE(lines_of("runs/lr-1/worker-2/steps.csv"), 1) << "it takes no part while they do";
  for (const char* task : {"worker:0", "worker:1"}) running[task]->signal(SIGINT);
  const Ended outside = running["worker:2"]->finish();
  EXPECT_EQ(outside.code, 130) << outside.err;
  // A worker that leaves before the other joins makes room for it.
  EXPECT_THAT(outside.out, ::testing::AnyOf(HasSubstr("worker:2: training is over: it ended without this worker"),
                                            HasSubstr("interrupted after step")));
  running.erase("worker:2");
  expect_all_end(130);
}

TEST_F(AllReduceByHand, TooFewGiveUpAndSayWhoIsMissing) {
  make_cluster({{"worker", 3}});
  start("worker:0", {"--min-workers", "2", "--start-wait", "0.5", "--patience", "2"});
  const Ended ended = running["worker:0"]->finish();
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("worker:1"), HasSubstr("worker:2")));
}

// Refusals.

TEST_F(AllReduceByHand, AWorkerWithOtherSettingsIsRefusedWithAClearLine) {
  make_cluster({{"worker", 2}});
  start("worker:0");
  start("worker:1", {"--lr", "0.7"});
  const Ended refused = running["worker:1"]->finish();
  EXPECT_EQ(refused.code, 2) << refused.out << refused.err;
  expect_one_line(refused.err);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("worker:0"), HasSubstr("differ")));
  start("worker:1");
  expect_all_end();
}

TEST_F(AllReduceByHand, WhatCannotBeIsRefusedWithOneLine) {
  const Words base{"train", "lr", "--dataset", "synthetic"};
  const Words two = base + Words{"--workers", "2", "--strategy", "allreduce"};
  const Words replicas = base + Words{"--replicas", "2"};
  const std::vector<std::pair<Words, std::string>> cases{
      {two + Words{"--async"}, "async needs parameter servers"},
      {two + Words{"--aggregate", "1"}, "aggregate: 1 needs parameter servers"},
      {two + Words{"--contributions"}, "contributions: needs parameter servers"},
      {two + Words{"--ps", "1"}, "no parameter servers"},
      {two + Words{"--layout", "PW-W"}, "no parameter servers"},
      {two + Words{"--top-k", "0.1", "--wire", "bf16"}, "choose one"},
      {two + Words{"--replicas", "2"}, "not allowed in a cluster"},
      {two + Words{"--collective", "inprocess"}, "is for --replicas"},
      {two + Words{"--min-workers", "3"}, "more than the 2 workers"},
      {two + Words{"--min-workers", "2", "--max-workers", "1"}, "less than min-workers"},
      {two + Words{"--global-batch", "33"}, "cannot be shared evenly among 2 workers"},
      {two + Words{"--top-k", "1.5"}, "a number from 0 to 1"},
      {two + Words{"--bucket-mb", "0"}, "a number from 0.001"},
      {base + Words{"--workers", "2", "--ps", "1", "--top-k", "0.1"}, "only for all-reduce"},
      {base + Words{"--strategy", "ps"}, "add --workers"},
      {base + Words{"--collective", "mpi"}, "add --workers"},
      {base + Words{"--autotune"}, "add --workers"},
      {replicas + Words{"--collective", "gloo"}, "not allowed with replicas"},
      {replicas + Words{"--strategy", "ps"}, "not allowed with replicas"},
      {replicas + Words{"--async"}, "async"},
      {replicas + Words{"--evaluator"}, "evaluator"},
      {replicas + Words{"--top-k", "0.1", "--wire", "f16"}, "choose one"},
      {replicas + Words{"--global-batch", "33"}, "cannot be shared evenly among 2 replicas"}};
  for (const auto& [words, text] : cases) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    EXPECT_THAT(fail(words, 2), HasSubstr(text));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
  // Started by hand.
  make_cluster({{"worker", 2}});
  for (const Words& more : std::vector<Words>{{"--strategy", "ps"}, {"--async"}, {"--collective", "mpi"}}) {
    start("worker:0", more);
    const Ended refused = running["worker:0"]->finish();
    EXPECT_EQ(refused.code, 2) << refused.out;
    expect_one_line(refused.err);
    EXPECT_THAT(refused.err, HasSubstr(more.back().substr(more.back().find_first_not_of('-'))));
  }
}

TEST_F(AllReduceByHand, LessThanHalfIsRefusedWhereNobodyDecides) {
  make_cluster({{"worker", 5}});
  for (const std::string name : {"min-workers", "max-workers"}) {
    start("worker:0", {"--" + name, "2"});
    const Ended refused = running["worker:0"]->finish();
    EXPECT_EQ(refused.code, 2) << refused.out;
    expect_one_line(refused.err);
    EXPECT_THAT(refused.err, HasSubstr(name + ": 2 is less than half of the 5 workers"));
  }
}

/// Returns an address of this machine that is not loopback; "" if it has none.
std::string own_address(const TempDir& folder) {
  const std::string file = folder / "address";
  if (std::system(("hostname -I | tr ' ' '\\n' | grep -m1 '\\.' > " + file).c_str()) != 0) return "";  // NOLINT
  const std::string text = get_file(file);
  return text.substr(0, text.find('\n'));
}

TEST_F(AllReduceByHand, AnAddressBeyondThisMachineNeedsConsentEvenWithKeys) {
  const std::string host = own_address(folder);
  if (host.empty()) GTEST_SKIP() << "this machine has only loopback";
  ASSERT_EQ(run({"keys", "new", "keys", "--shared"}).code, 0);
  make_cluster({{"worker", 2}}, host);
  for (const Words& more : std::vector<Words>{{}, {"--tls", "keys"}}) {
    start("worker:0", more);
    const Ended refused = running["worker:0"]->finish();
    EXPECT_EQ(refused.code, 2);
    expect_one_line(refused.err);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("not encrypted"), HasSubstr("--insecure")));
  }
  for (const char* task : {"worker:0", "worker:1"}) start(task, {"--insecure", "--tls", "keys"}, "both");
  expect_all_end();
  EXPECT_EQ(result("both/lr-1").examples, 1200U);
}

// The evaluator.

TEST_F(AllReduceByHand, AnEvaluatorFollowsTheCheckpoints) {
  const Words words = Words{"lr", "--batch", "50", "--epochs", "3", "--evaluator"} + data();
  const Result result = train_together("run", words, 2);
  const std::string evals = get_file(folder / "run/evaluator-0/evals.csv");
  EXPECT_THAT(evals, HasSubstr("\n18,")) << evals;
  EXPECT_EQ(result.summary["test_step"], 18);
  const Result goal = train_together(
      "goal", Words{"lr", "--batch", "50", "--epochs", "1000000", "--stop-accuracy", "0.6", "--evaluator"} + data(), 2);
  EXPECT_EQ(goal.summary["stop_reason"], "accuracy");
}

TEST_F(AllReduceByHand, AnEvaluatorThatComesAfterAShortTrainingEvaluatesItsEnd) {
  make_cluster({{"worker", 1}, {"evaluator", 1}});
  start("worker:0");
  wait_for_lines("runs/lr-1/summary.json", 1);
  start("evaluator:0", {"--patience", "30"});
  expect_all_end();
  EXPECT_THAT(get_file(folder / "runs/lr-1/evaluator-0/evals.csv"), HasSubstr("\n24,"));
}

TEST_F(AllReduceByHand, AnEvaluatorThatIsContinuedWhenAllAreGoneEvaluatesTheEnd) {
  make_cluster({{"worker", 1}, {"evaluator", 1}});
  const Words patient{"--epochs", "0", "--seconds", "2", "--patience", "30"};
  for (const char* task : {"worker:0", "evaluator:0"}) start(task, patient);
  wait_for_lines("runs/lr-1/evaluator-0/evals.csv", 1);
  running["evaluator:0"]->signal(SIGSTOP);
  wait_for_lines("runs/lr-1/summary.json", 1);
  running["worker:0"]->signal(SIGTERM);  // it waits for the evaluator
  EXPECT_EQ(running["worker:0"]->finish().code, 0);
  running["evaluator:0"]->signal(SIGCONT);
  EXPECT_EQ(running["evaluator:0"]->finish().code, 0);
  const std::string evals = get_file(folder / "runs/lr-1/evaluator-0/evals.csv");
  EXPECT_THAT(evals, HasSubstr(fmt::format("\n{},", result("runs/lr-1").steps)));
}

// Stragglers.

TEST_F(AllReduceByHand, AWorkerThatIsHeldUpIsNamed) {
  make_cluster({{"worker", 3}});
  model = "lenet";
  const Words longer{"--epochs", "0", "--steps", "1000000", "--batch", "100"};
  for (const char* task : {"worker:0", "worker:1", "worker:2"}) start(task, longer);
  wait_for_lines("runs/lenet-1/steps.csv", 30);
  Process& slow = *running["worker:1"];
  bool named = false;
  for (int i = 0; i < 2000 && !named; ++i) {
    slow.signal(SIGSTOP);
    pause(50);
    named = running["worker:0"]->has_said("worker:1 is slow since step ");
    const double used = cpu_seconds(slow.pid());
    slow.signal(SIGCONT);
    // On however busy a machine, it computes for some part of a step.
    for (int turn = 0; turn < 2000 && cpu_seconds(slow.pid()) < used + 0.005; ++turn) pause(1);
  }
  for (auto& [task, process] : running) process->signal(SIGINT);
  expect_all_end(130);
  const nlohmann::json summary = result("runs/lenet-1").summary;
  ASSERT_TRUE(summary.contains("stragglers")) << summary.dump(2);
  EXPECT_THAT(summary["stragglers"].dump(), HasSubstr("worker:1 was slow from step ")) << summary.dump(2);
}

}  // namespace
}  // namespace lockstep::testing
