// `lockstep train --workers N`: the launching itself, with roles simulated by a shell script.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

bool alive(const std::string& pid) {
  const std::string stat = get_file("/proc/" + pid + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

template <class F>
bool eventually(F&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string line_of(const std::string& path) {
  const std::string text = get_file(path);
  return text.substr(0, text.find('\n'));
}

std::string cluster_program() { return std::getenv("LOCKSTEP_CLUSTER_PROGRAM"); }  // NOLINT(concurrency-mt-unsafe)

class LocalCluster : public ProgramTest {
 protected:
  /// The common part of every role; writes its number and words to files named by its task.
  void play(const std::string& script) const {
    std::ofstream(folder / "play") << "echo $$ > $task.new && mv $task.new $task.pid\necho \"$words\" > $task.words\n"
                                   << script << "\n";
  }
  [[nodiscard]] ProcessOptions with_play() const {
    ProcessOptions result = options();
    result.environment.emplace_back("LOCKSTEP_PLAY", folder / "play");
    return result;
  }
  [[nodiscard]] Ended launch(const Words& words) const {
    return Process(cluster_program(), words, with_play()).finish();
  }
  [[nodiscard]] static Words train(const Words& more = {}) {
    Words words{"train", "lr", "--dataset", "synthetic", "--workers", "2", "--ps", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::string pid(const std::string& task) const { return line_of(folder / (task + ".pid")); }
  [[nodiscard]] std::string words_of(const std::string& task) const { return line_of(folder / (task + ".words")); }
  [[nodiscard]] std::unique_ptr<Process> start_waiting() const {
    auto process = std::make_unique<Process>(cluster_program(), train(), with_play());
    for (const char* task : {"ps:0", "worker:0", "worker:1"}) {
      EXPECT_TRUE(eventually([&] { return !pid(task).empty() && alive(pid(task)); })) << task;
    }
    return process;
  }
  void expect_nobody_left() const {
    for (const char* task : {"ps:0", "worker:0", "worker:1"}) {
      EXPECT_TRUE(eventually([&] { return !alive(pid(task)); })) << task;
    }
  }

  static constexpr const char* kWait = "trap 'exit 130' INT; while :; do sleep 0.02; done";
};

TEST_F(LocalCluster, StartsEveryRoleWithItsPlaceAndTheSameSettings) {
  play("exit 0");
  const Ended ended = launch(train({"--async", "--batch", "7", "--evaluator", "--restarts", "3"}));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  for (const char* task : {"ps:0", "worker:0", "worker:1", "evaluator:0"}) {
    EXPECT_THAT(words_of(task),
                AllOf(StartsWith("train lr "), HasSubstr("--mode=async"), HasSubstr("--batch=7"),
                      HasSubstr("--cluster=runs/lr-1/cluster.yaml"), HasSubstr("--run-dir=runs/lr-1"),
                      HasSubstr("--report=json"), HasSubstr(std::string("--task=") + task), HasSubstr("--threads="),
                      Not(HasSubstr("--workers")), Not(HasSubstr("--restarts"))));
  }
  EXPECT_THAT(get_file(folder / "runs/lr-1/cluster.yaml"), AllOf(HasSubstr("ps:"), HasSubstr("127.0.0.1:")));
}

TEST_F(LocalCluster, ShowsHowItEndedWithALinePerWorker) {
  play(R"sh(if [ $task = worker:0 ]; then
echo '{"event":"eval","step":9,"epoch":1,"loss":0.5,"accuracy":0.875,"best":true}'
echo '{"steps":9,"seconds":2,"stop_reason":"steps","test_loss":0.5,"test_accuracy":0.875,"test_step":9,
"role":"worker:0","peak_memory_bytes":50000000,
"workers":[{"role":"worker:0","iterations":5,"wait_share":0.25},{"role":"worker:1","iterations":4}]}' > $run/summary.json
fi)sh");
  const Ended ended = launch(train());
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("2 workers of"), HasSubstr("trained 9 steps"), HasSubstr("87.50 %"),
                               HasSubstr("worker    iterations  waited  restarts"), HasSubstr("25.0 %"),
                               HasSubstr("peak memory     50.0 MB in worker:0\n"),
                               HasSubstr("next:  cluster_program eval runs/lr-1")));
}

TEST_F(LocalCluster, ADeadRoleIsNamedAndStartedAgain) {
  play(R"sh([ $task = worker:1 ] || while [ ! -e back ]; do sleep 0.02; done
[ $task != worker:1 ] || { [ -e died ] && touch back; } || { touch died; kill -9 $$; })sh");
  const Ended ended = launch(train());
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("worker:1 died: killed by signal 9 (Killed); restarting it (1 of 10)"));
}

TEST_F(LocalCluster, ARoleThatCannotBeKeptAliveEndsTheJob) {
  play("[ $task = ps:0 ] && { echo 'cluster_program: the disk is full' >&2; exit 1; }; sleep 60");
  const Ended ended = launch(train({"--restarts", "1"}));
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              AllOf(StartsWith("cluster_program: ps:0 died"), HasSubstr("the disk is full"), HasSubstr("left of 1")));
  expect_nobody_left();
}

TEST_F(LocalCluster, CtrlCEndsEveryRole) {
  play(kWait);
  const auto process = start_waiting();
  process->signal(SIGINT);
  EXPECT_EQ(process->finish().code, 130);
  expect_nobody_left();
}

TEST_F(LocalCluster, AKilledLauncherLeavesNobodyAndItsRunCanBeResumed) {
  play("trap '' INT TERM; [ -e second ] || while :; do sleep 0.02; done");
  const auto process = start_waiting();
  process->signal(SIGKILL);
  EXPECT_EQ(process->finish().code, 128 + SIGKILL);
  expect_nobody_left();

  std::ofstream(folder / "second") << "\n";
  const Ended resumed = launch({"train", "--resume", "lr-1"});
  EXPECT_EQ(resumed.code, 0) << resumed.out << resumed.err;
  EXPECT_THAT(words_of("worker:1"), AllOf(HasSubstr("--resume=runs/lr-1"), Not(HasSubstr("--run-dir"))));
}

TEST_F(LocalCluster, ARunOfOneProcessSharesTheCoresWhenResumedByACluster) {
  play("exit 0");
  const auto threads = [&] {
    const std::string words = words_of("worker:1");
    const size_t at = words.find("--threads=");
    return words.substr(at, words.find(' ', at) - at);
  };
  (void)launch(train());
  const std::string share = threads();
  (void)launch(train({"--name", "other", "--threads", "9"}));
  EXPECT_EQ(threads(), "--threads=9");
  // The same workers keep their threads; those of a single process, for which there is no launch.yaml, are too many.
  const Ended same = launch({"train", "--resume", "other-1"});
  EXPECT_EQ(threads(), "--threads=9") << same.out << same.err;
  fs::remove(folder / "runs/other-1/launch.yaml");
  const Ended shared = launch({"train", "--resume", "other-1", "--workers", "2", "--ps", "1"});
  EXPECT_EQ(threads(), share) << shared.out << shared.err;
}

TEST_F(LocalCluster, AFinishedRunSaysSoAndStaysAsItIs) {
  const Words limits{"--train-limit", "400", "--test-limit", "100", "--batch", "10", "--epochs", "1"};
  Words words{"train", "lr", "--dataset", "synthetic", "--workers", "2", "--ps", "1", "--threads", "1"};
  words.insert(words.end(), limits.begin(), limits.end());
  (void)succeed(words);
  const std::string summary = get_file(folder / "runs/lr-1/summary.json");
  const std::string phases = get_file(folder / "runs/lr-1/worker-1/summary.json");
  const Ended again = succeed({"train", "--resume", "lr-1"});
  EXPECT_THAT(again.out, AllOf(HasSubstr("runs/lr-1 has already ended: trained 1 epoch"), HasSubstr("worker:1")));
  EXPECT_EQ(get_file(folder / "runs/lr-1/summary.json"), summary);
  EXPECT_EQ(get_file(folder / "runs/lr-1/worker-1/summary.json"), phases);
  EXPECT_THAT(succeed({"train", "--resume", "lr-1", "--epochs", "2"}).out, HasSubstr("trained 2 epochs"));
}

TEST_F(LocalCluster, ALayoutSaysWhoThereIs) {
  play("exit 0");
  const Ended ended = launch({"train", "lr", "--dataset", "synthetic", "--layout", "PW-PW"});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  for (const char* task : {"ps:0", "ps:1", "worker:0", "worker:1"}) EXPECT_NE(pid(task), "") << task;
  EXPECT_THAT(get_file(folder / "runs/lr-1/cluster.yaml"), HasSubstr("127.0.0.2:"));
}

TEST_F(LocalCluster, EachRoleHasItsCpuQuota) {
  if (const std::string why = why_not("cpu_quota"); !why.empty()) GTEST_SKIP() << why;
  // Waits until it is in its process group, which it enters right after the start.
  play("until grep -q /lockstep- /proc/self/cgroup; do sleep 0.01; done; cat /proc/self/cgroup > $task.group");
  const Ended ended = launch(train({"--cpu-quota", "0.25"}));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(get_file(folder / "worker:1.group"), HasSubstr("-worker-1"));
  const auto throttling = nlohmann::json::parse(get_file(folder / "runs/lr-1/throttling.json"));
  EXPECT_TRUE(throttling.contains("ps:0")) << throttling;
  EXPECT_THAT(words_of("worker:0"), AllOf(HasSubstr("--wait-policy=block"), Not(HasSubstr("--cpu-quota"))));
}

TEST_F(LocalCluster, WrongUsageIsFoundBeforeAnythingStarts) {
  EXPECT_THAT(fail(train({"--lr", "x"}), 2), HasSubstr("--lr"));
  EXPECT_THAT(fail(train({"--layout", "XYZ"}), 2), HasSubstr("XYZ"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

}  // namespace
}  // namespace lockstep::testing
