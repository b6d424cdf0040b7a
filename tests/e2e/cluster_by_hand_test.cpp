// A cluster whose roles are started by hand or by a scheduler, in any order, with TF_CONFIG or a file; its keys.
#include <fmt/format.h>

#include <csignal>
#include <map>
#include <thread>

#include "e2e/cluster.h"
#include "http/client.h"
#include "transport/streams.h"

namespace lockstep::testing {
namespace {

int free_port() { return transport::Server(transport::testing::any_port(), transport::testing::echo).port(); }

class ByHand : public ClusterTest {
 protected:
  /// `layout` is the number of each role; a chief or an evaluator may be included.
  void make_cluster(const std::map<std::string, int>& layout, const std::string& host = "127.0.0.1") {
    for (const auto& [role, count] : layout) {
      for (int i = 0; i < count; ++i) addresses[role].push_back(fmt::format("{}:{}", host, free_port()));
    }
  }
  [[nodiscard]] std::string tf_config(const std::string& role, int index) const {
    return nlohmann::json{{"cluster", addresses}, {"task", {{"type", role}, {"index", index}}}}.dump();
  }
  void start(const std::string& task, const Words& more = {}, const std::string& runs = "runs") {
    const size_t colon = task.find(':');
    ProcessOptions with = options();
    with.environment.emplace_back("TF_CONFIG", tf_config(task.substr(0, colon), std::stoi(task.substr(colon + 1))));
    running[task] = std::make_unique<Process>(program_path(), words() + Words{"--runs-dir", runs} + more, with);
  }
  [[nodiscard]] Words words() const { return Words{"train", "lr", "--batch", "50", "--epochs", "2"} + data(); }
  /// `code` is the exit code of training roles; servers and evaluators exit with 0 however training ends.
  void expect_all_end(int code = 0) {
    for (auto& [task, process] : running) {
      const Ended ended = process->finish();
      EXPECT_EQ(ended.code, task.starts_with("worker") ? code : 0) << task << ": " << ended.out << ended.err;
    }
  }
  /// Waits until a role has logged this much.
  void wait_for_lines(const std::string& file, int lines) const {
    for (int i = 0; i < 6000; ++i) {
      const std::string text = get_file(folder / file);
      if (std::count(text.begin(), text.end(), '\n') >= lines) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << file << " never had " << lines << " lines";
  }
  /// Waits until a process listens at the role's address.
  void wait_for_listener(const std::string& role, size_t index) const {
    const int port = std::stoi(addresses.at(role).at(index).substr(addresses.at(role).at(index).find(':') + 1));
    for (int i = 0; i < 6000; ++i) {
      if (Client(port).connected()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << role << ":" << index << " never listened";
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(700)); }

  std::map<std::string, std::vector<std::string>> addresses;
  std::map<std::string, std::unique_ptr<Process>> running;
};

TEST_F(ByHand, TheOrderOfStartingDoesNotMatter) {
  const Result launched = train("launched", Words{"lr", "--batch", "50", "--epochs", "2", "--workers", "2"} + data());
  const std::vector<Words> orders{
      {"ps:0", "worker:0", "worker:1"}, {"worker:1", "worker:0", "ps:0"}, {"worker:0", "ps:0", "worker:1"}};
  for (size_t i = 0; i < orders.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(orders[i], " ")));
    addresses.clear();
    running.clear();
    make_cluster({{"ps", 1}, {"worker", 2}});
    const std::string runs = "runs-" + std::to_string(i);
    for (const std::string& task : orders[i]) {
      start(task, {}, runs);
      pause();
    }
    expect_all_end();
    expect_same_bits(launched, result(runs + "/lr-1"));
  }
}

TEST_F(ByHand, WithAChiefAndAnEvaluator) {
  make_cluster({{"chief", 1}, {"ps", 2}, {"worker", 1}, {"evaluator", 1}});
  for (const char* task : {"evaluator:0", "worker:0", "ps:1", "chief:0", "ps:0"}) start(task);
  expect_all_end();
  const Result result = this->result("runs/lr-1");
  EXPECT_EQ(result.examples, 1200U);
  EXPECT_EQ(result.summary["workers"][0]["role"], "chief:0");
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/lr-1/evaluator-0/evals.csv"));
}

TEST_F(ByHand, AnEvaluatorThatNeverComesHoldsNothingUp) {
  make_cluster({{"ps", 1}, {"worker", 1}, {"evaluator", 1}});
  for (const char* task : {"worker:0", "ps:0"}) start(task);
  expect_all_end();
  EXPECT_EQ(result("runs/lr-1").examples, 1200U);
}

TEST_F(ByHand, AWorkerThatComesWhenAllIsOverEndsToo) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  for (const char* task : {"worker:0", "ps:0"}) start(task, {"--epochs", "0", "--async", "--seconds", "0.2"});
  EXPECT_EQ(running["worker:0"]->finish().code, 0);
  start("worker:1", {"--epochs", "0", "--async", "--seconds", "0.2"});
  expect_all_end();
}

const Words kOneSecond{"--epochs", "0", "--async", "--seconds", "1", "--patience", "30"};

TEST_F(ByHand, AWorkerThatIsContinuedWhenAllAreGoneEndsToo) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  for (const char* task : {"worker:1", "ps:0"}) start(task, kOneSecond);
  wait_for_lines("runs/lr-1/worker-1/config.yaml", 1);
  start("worker:0", kOneSecond);  // started now, so that the second does not pass before the other role is up
  wait_for_lines("runs/lr-1/config.yaml", 1);
  running["worker:1"]->signal(SIGSTOP);
  EXPECT_EQ(running["worker:0"]->finish().code, 0);
  running["ps:0"]->signal(SIGTERM);  // it would wait a while for joining workers
  EXPECT_EQ(running["ps:0"]->finish().code, 0);
  running["worker:1"]->signal(SIGCONT);
  const Ended late = running["worker:1"]->finish();
  EXPECT_EQ(late.code, 0) << late.out << late.err;
  EXPECT_EQ(late.err, "");
  // If it had learnt of the end from the server before it was stopped, it ended like the others.
  EXPECT_THAT(late.out, ::testing::AnyOf(HasSubstr("worker:1: training is over: it ended without this worker\n"),
                                         HasSubstr("the time limit was reached")));
  EXPECT_EQ(result("runs/lr-1").summary["role"], "worker:0");
}

TEST_F(ByHand, AWorkerThatDiedBeforeTheEndAndComesAfterItHearsOfIt) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  const Words endless{"--epochs", "0", "--async", "--steps", "1000000000", "--patience", "30"};
  for (const char* task : {"worker:0", "worker:1", "ps:0"}) start(task, endless);
  for (const char* log : {"runs/lr-1/steps.csv", "runs/lr-1/worker-1/steps.csv"}) wait_for_lines(log, 2);
  running["worker:1"]->signal(SIGKILL);
  running["worker:0"]->signal(SIGINT);
  EXPECT_EQ(running["worker:0"]->finish().code, 130);
  running.erase("worker:0");
  start("worker:1", endless);
  expect_all_end(130);
}

TEST_F(ByHand, AnEvaluatorThatComesAfterAShortTrainingEvaluatesItsEnd) {
  make_cluster({{"ps", 2}, {"worker", 1}, {"evaluator", 1}});
  for (const char* task : {"worker:0", "ps:0", "ps:1"}) start(task);
  EXPECT_EQ(running["worker:0"]->finish().code, 0);
  start("evaluator:0", {"--patience", "30"});
  expect_all_end();
  EXPECT_THAT(get_file(folder / "runs/lr-1/evaluator-0/evals.csv"), HasSubstr("\n24,"));
}

TEST_F(ByHand, AnEvaluatorThatIsContinuedWhenAllAreGoneEvaluatesTheEnd) {
  make_cluster({{"ps", 1}, {"worker", 1}, {"evaluator", 1}});
  start("ps:0", kOneSecond);
  start("evaluator:0", kOneSecond);
  wait_for_lines("runs/lr-1/evaluator-0/evals.csv", 1);
  running["evaluator:0"]->signal(SIGSTOP);
  start("worker:0", kOneSecond);
  EXPECT_EQ(running["worker:0"]->finish().code, 0);
  running["ps:0"]->signal(SIGTERM);
  EXPECT_EQ(running["ps:0"]->finish().code, 0);
  running["evaluator:0"]->signal(SIGCONT);
  EXPECT_EQ(running["evaluator:0"]->finish().code, 0);
  const std::string evals = get_file(folder / "runs/lr-1/evaluator-0/evals.csv");
  EXPECT_THAT(evals, HasSubstr(fmt::format("\n{},", result("runs/lr-1").steps)));
}

TEST_F(ByHand, WithAFileAndATask) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  std::ofstream(folder / "cluster.yaml") << "ps: [" << addresses["ps"][0] << "]\nworker: [" << addresses["worker"][0]
                                         << ", " << addresses["worker"][1] << "]\n";
  for (const char* task : {"worker:1", "worker:0", "ps:0"}) {
    running[task] = std::make_unique<Process>(program_path(),
                                              words() + Words{"--cluster", "cluster.yaml", "--task", task}, options());
  }
  expect_all_end();
  EXPECT_EQ(result("runs/lr-1").examples, 1200U);
}

TEST_F(ByHand, ARoleWithOtherSettingsIsRefusedWithAClearLine) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  start("ps:0");
  start("worker:1", {"--lr", "0.7"});
  const Ended refused = running["worker:1"]->finish();
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("ps:0 at 127.0.0.1"), HasSubstr("refused worker:1"),
                                 HasSubstr("differ in model, data or settings")));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  start("worker:1");
  start("worker:0");
  expect_all_end();
}

// Keys.

class Keys : public ByHand {
 protected:
  void make_keys(const std::string& name, const Words& more = {}) const {
    const Ended made = run(Words{"keys", "new", name} + more);
    EXPECT_EQ(made.code, 0) << made.err;
  }
};

TEST_F(Keys, AClusterWithKeysTrainsTheSame) {
  make_keys("keys", {"--shared"});
  const Words words = Words{"lr", "--batch", "50", "--epochs", "2", "--workers", "2", "--ps", "2"} + data();
  expect_same_bits(train("open", words), train("closed", words + Words{"--tls", "keys"}));
}

TEST_F(Keys, APeerWithOtherKeysOrNoneIsRefusedAndTheOthersTrainOn) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  const Words all{"--node", "127.0.0.1", "--roles", "ps:0,worker:0,worker:1"};
  make_keys("keys", all);
  make_keys("other", all);
  start("ps:0", {"--tls", "keys"});
  wait_for_listener("ps", 0);
  start("worker:1", {"--tls", "other"});
  const Ended other = running["worker:1"]->finish();
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
  EXPECT_THAT(other.err, AllOf(HasSubstr("ps:0 at 127.0.0.1"), HasSubstr("is signed by another authority")));
  start("worker:1", {"--patience", "3"});
  const Ended none = running["worker:1"]->finish();
  EXPECT_NE(none.code, 0);
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1) << none.err;
  start("worker:1", {"--tls", "keys"});
  start("worker:0", {"--tls", "keys"});
  expect_all_end();
  EXPECT_EQ(result("runs/lr-1").examples, 1200U);
}

TEST_F(Keys, OfAnotherRoleGetNothing) {
  make_cluster({{"ps", 1}, {"worker", 2}});
  make_keys("keys", {"--node", "a", "--roles", "ps:0"});
  make_keys("keys", {"--node", "b", "--roles", "worker:0"});
  make_keys("keys", {"--node", "c", "--roles", "worker:1"});
  const auto refused = [&](const std::string& task, const std::string& keys) {
    start(task, {"--tls", keys});
    const Ended ended = running[task]->finish();
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(refused("ps:0", "keys/c"), HasSubstr("keys/c/node.pem is for worker:1, not for ps:0"));
  EXPECT_THAT(refused("worker:0", "keys/c"), HasSubstr("is for worker:1, not for worker:0"));
  start("ps:0", {"--tls", "keys/a"});
  start("worker:0", {"--tls", "keys/b"});
  start("worker:1", {"--tls", "keys/c"});
  expect_all_end();
  EXPECT_EQ(result("runs/lr-1").examples, 1200U);
}

TEST_F(Keys, MissingKeysAreOneLine) {
  EXPECT_THAT(fail(Words{"train", "lr", "--dataset", "synthetic", "--workers", "1", "--tls", "nowhere"}, 2),
              HasSubstr("nowhere"));
}

/// Returns an address of this machine that is not loopback; "" if it has none.
std::string own_address(const TempDir& folder) {
  const std::string file = folder / "address";
  if (std::system(("hostname -I | tr ' ' '\\n' | grep -m1 '\\.' > " + file).c_str()) != 0) return "";  // NOLINT
  const std::string text = get_file(file);
  return text.substr(0, text.find('\n'));
}

TEST_F(Keys, AnAddressBeyondThisMachineNeedsKeysOrConsent) {
  const std::string host = own_address(folder);
  if (host.empty()) GTEST_SKIP() << "this machine has only loopback";
  make_cluster({{"ps", 1}, {"worker", 1}}, host);
  start("worker:0");
  const Ended refused = running["worker:0"]->finish();
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("--tls"), HasSubstr("--insecure")));

  for (const char* task : {"ps:0", "worker:0"}) start(task, {"--insecure"}, "open");
  expect_all_end();
  EXPECT_EQ(result("open/lr-1").examples, 1200U);

  make_keys("keys", {"--node", host, "--roles", "ps:0,worker:0"});
  for (const char* task : {"ps:0", "worker:0"}) start(task, {"--tls", "keys"}, "closed");
  expect_all_end();
  EXPECT_EQ(result("closed/lr-1").examples, 1200U);
}

}  // namespace
}  // namespace lockstep::testing
