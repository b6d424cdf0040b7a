// Training on emulated clusters with real namespaces and control groups. Tests are skipped, with the reason, if the
// machine does not allow them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include "base/parallel.h"
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// Returns the namespaces and groups whose names begin with this text.
std::vector<std::string> left(const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/run/netns", error)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
  }
  for (const auto& entry : fs::directory_iterator("/run/lockstep", error)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
  }
  fs::recursive_directory_iterator at("/sys/fs/cgroup", error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) continue;
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path().string());
  }
  return found;
}

/// Returns the cores of a node, so that three of them fit into this machine.
double node_cores() { return base::available_cores() > 1 ? 0.5 : 0.2; }

std::string nodes(const std::string& more = "") { return fmt::format("cores={}{}", node_cores(), more); }

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

class Emulate : public ProgramTest {
 protected:
  void SetUp() override {
    if (const std::string why = why_not("emulate"); !why.empty()) GTEST_SKIP() << why;
  }
  [[nodiscard]] static Words train(const std::string& model, const Words& more, int examples = 3000) {
    Words words{"train",        model, "--dataset", "synthetic", "--train-limit", std::to_string(examples),
                "--test-limit", "300"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] json read(const std::string& path) const {
    return json::parse(get_file(folder / ("runs/" + path)), nullptr, false);
  }
  void expect_learned(const std::string& run) const {
    EXPECT_GT(summary(run).value("test_accuracy", 0.0), 0.97);
    const json nodes = read(run + "/nodes.json");
    ASSERT_TRUE(nodes.is_array()) << run;
    for (const json& node : nodes) EXPECT_GE(node.value("throttled_seconds", -1.0), 0) << node;
  }
  [[nodiscard]] std::string host(const std::string& path) const {
    return read(path + "/summary.json").value("host", "");
  }
};

class WithoutRights : public ProgramTest {
 protected:
  void SetUp() override { fs::permissions(folder.path(), fs::perms::all); }
  /// Returns the one error line of an ordinary user, or of root without the rights that a container lacks.
  [[nodiscard]] std::string refused(const Words& words, bool as_user) const {
    Words all = as_user ? Words{"--reuid=65534", "--regid=65534", "--clear-groups", program_path()}
                        : Words{"--bounding-set=-sys_admin,-net_admin", "--inh-caps=-all", program_path()};
    all.insert(all.end(), words.begin(), words.end());
    const Ended ended = geteuid() == 0 ? Process("/usr/bin/setpriv", all, options()).finish() : run(words);
    EXPECT_EQ(ended.code, 2) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_FALSE(fs::exists(folder / "runs")) << "an empty folder is left";
    return ended.err;
  }
};

TEST_F(WithoutRights, EmulationEndsWithALineThatSaysWhatIsMissingAndWhatToDo) {
  const Words one{"train", "lr", "--dataset", "synthetic", "--emulate", "on"};
  Words two = one;
  two.insert(two.end(), {"--workers", "2"});
  put_file(folder / "e.yaml", bytes_of("name: e\nbase: {model: lr, dataset: synthetic}\ncluster: {emulate: on}\n"));
  for (const bool as_user : {false, true}) {
    const auto missing = ::testing::ContainsRegex("network namespaces need (root|CAP_SYS_ADMIN);");
    EXPECT_THAT(refused(one, as_user), AllOf(missing, HasSubstr("without --emulate")));
    EXPECT_THAT(refused(two, as_user), AllOf(missing, HasSubstr("without --emulate")));
    EXPECT_THAT(refused({"lab", "run", "e.yaml"}, as_user), AllOf(missing, HasSubstr("--local")));
  }
}

TEST_F(WithoutRights, AQuotaEndsWithALineThatSaysWhatIsMissingAndWhatToDo) {
  EXPECT_THAT(refused({"train", "lr", "--dataset", "synthetic", "--workers", "2", "--cpu-quota", "0.5"}, true),
              ::testing::ContainsRegex("--cpu-quota: .*control groups .*; train without it"));
}

TEST_F(Emulate, OneProcessIsOnANodeOfItsOwnAlsoWhenItIsResumed) {
  const Ended ended =
      run(train("lr", {"--epochs", "2", "--emulate", "cores=0.5,memory=2GB", "--monitor-every", "0.05"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("test accuracy"));
  expect_learned("lr-1");
  const json one = summary("lr-1");
  EXPECT_EQ(one["host"], "node1");
  EXPECT_EQ(one["resources"]["cores"], 0.5);
  EXPECT_EQ(one["resources"]["memory_bytes"], 2e9);
  EXPECT_GT(one["resources"]["node_cpu_percent"]["mean"], 1);
  EXPECT_GT(one["resources"]["node_memory_used"]["max"], 1e6);
  EXPECT_LT(one["resources"]["node_memory_used"]["max"], 2e9);
  EXPECT_TRUE(one["resources"].contains("eth0_received"));
  EXPECT_EQ(read("lr-1/nodes.json")[0]["roles"], json({"process"}));
  EXPECT_TRUE(read("lr-1/throttling.json").contains("process"));
  const Ended more = run({"train", "--resume", "lr-1", "--epochs", "3", "--quiet"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(summary("lr-1")["epochs"], 3);
  EXPECT_EQ(host("lr-1"), "node1");
}

/// The memory limit at which it fails depends on the machine.
TEST_F(Emulate, AStartThatFailsLeavesNoFolder) {
  ProcessOptions limited = options();
  int failed = 0;
  for (uint64_t kilobytes = 90'000; kilobytes <= 150'000; kilobytes += 10'000) {
    limited.address_space = kilobytes * 1024;
    const Ended ended = lockstep(train("lenet", {"--emulate", "cores=0.5", "--epochs", "1"}, 500), limited);
    if (ended.code == 0) break;
    ++failed;
    // With a little more memory, training starts and fails later: then its steps are kept.
    const std::string steps = folder / "runs/lenet-1/steps.csv";
    const bool trained = fs::exists(steps) && std::ranges::count(get_file(steps), '\n') > 1;
    EXPECT_TRUE(trained || !fs::exists(folder / "runs/lenet-1")) << kilobytes << ": " << ended.err;
    fs::remove_all(folder / "runs");
  }
  EXPECT_GT(failed, 0);
}

TEST_F(Emulate, OneProcessHasItsOwnExitCodeAndHearsOfInterrupts) {
  EXPECT_THAT(fail(train("lr", {"--batch", "9999999", "--emulate", "cores=0.5"}), 2), HasSubstr("batch"));
  EXPECT_FALSE(fs::exists(folder / "runs/lr-1")) << "an empty folder is left";
  Process process(program_path(), train("lenet", {"--epochs", "1000", "--emulate", "cores=0.5"}), options());
  ASSERT_TRUE(process.wait_for("2/1000"));
  process.signal(SIGINT);
  const Ended ended = process.finish();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("interrupted"));
  EXPECT_TRUE(fs::exists(folder / "runs/lenet-1/throttling.json"));
}

TEST_F(Emulate, ParameterServersTrainOnNodesOfTheLayout) {
  const Ended ended = succeed(train(
      "lr", {"--epochs", "4", "--layout", "PS-W-W", "--emulate", nodes(",rate=1gbit"), "--monitor-every", "0.05"}));
  EXPECT_THAT(ended.out, HasSubstr(fmt::format("on 3 emulated nodes of {} cores, 1 Gbit/s", node_cores())));
  expect_learned("lr-1");
  EXPECT_EQ(host("lr-1/ps-0"), "node1");
  EXPECT_EQ(host("lr-1"), "node2");
  EXPECT_EQ(host("lr-1/worker-1"), "node3");
  const json nodes = read("lr-1/nodes.json");
  ASSERT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes[2]["address"], "10.77.0.3");
  EXPECT_EQ(nodes[2]["rate"], 1e9);
  EXPECT_EQ(nodes[2]["roles"], json({"worker:1"}));
  // Traffic between the nodes appears at their links.
  EXPECT_GT(summary("lr-1")["resources"]["eth0_sent"]["max"], 1000);
  const Ended more = succeed({"train", "--resume", "lr-1", "--epochs", "5"});
  EXPECT_THAT(more.out, HasSubstr("on 3 emulated nodes"));
}

TEST_F(Emulate, RolesShareNodesAsTheLayoutSays) {
  (void)succeed(train("lr", {"--seconds", "3", "--layout", "PW-PW", "--async", "--evaluator", "--emulate", "on"}));
  expect_learned("lr-1");
  const json nodes = read("lr-1/nodes.json");
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_EQ(nodes[0]["roles"], json({"ps:0", "worker:0"}));
  EXPECT_EQ(nodes[1]["roles"], json({"ps:1", "worker:1", "evaluator:0"}));
  EXPECT_EQ(host("lr-1/evaluator-0"), "node2");
  EXPECT_EQ(read("lr-1/throttling.json").size(), 5);
}

TEST_F(Emulate, AllReduceTrainsBetweenNodes) {
  (void)succeed(train("lr", {"--epochs", "4", "--workers", "3", "--strategy", "allreduce", "--emulate", nodes()}));
  expect_learned("lr-1");
  EXPECT_EQ(host("lr-1"), "node1");
  EXPECT_EQ(host("lr-1/worker-2"), "node3");
}

/// Returns the known values of a column.
std::vector<double> column_of(const std::string& csv, const std::string& name) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const auto cell = [&](size_t wanted) {
    std::istringstream cells(line);
    std::string text;
    for (size_t i = 0; i <= wanted; ++i) std::getline(cells, text, ',');
    return text;
  };
  size_t place = 0;
  while (cell(place) != name) ++place;
  std::vector<double> values;
  while (std::getline(lines, line)) {
    if (!cell(place).empty()) values.push_back(std::stod(cell(place)));
  }
  return values;
}

/// Returns all faults of a run, in order.
std::vector<std::string> faults_in(const std::string& text) {
  std::vector<std::string> faults;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) faults.push_back(json::parse(line)["fault"]);
  return faults;
}

TEST_F(Emulate, TrainingGoesOnThroughFaults) {
  const Ended ended =
      run(train("lenet", {"--seconds", "6", "--workers", "2", "--ps", "1", "--emulate", nodes(), "--faults",
                          "at 500ms kill worker:1; at 1s cut node2 for 500ms; at 2s slow node3 to 25% for 500ms; "
                          "at 3s kill ps:0",
                          "--monitor-every", "0.2"}));
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fault: cut node2 for 0.5s"));
  EXPECT_THAT(faults_in(get_file(folder / "runs/lenet-1/faults.jsonl")),
              ElementsAre("kill worker:1", "cut node2 for 0.5s", "node2 is back", "slow node3 to 25% for 0.5s",
                          "node3 is as fast as before", "kill ps:0"));
  EXPECT_THAT(ended.out, HasSubstr("worker:1 died: killed by signal 9"));
  EXPECT_THAT(ended.out, HasSubstr("ps:0 died: killed by signal 9"));
  const std::vector<double> memory = column_of(get_file(folder / "runs/lenet-1/ps-0/monitor.csv"), "node_memory_used");
  EXPECT_LT(*std::min_element(memory.begin(), memory.end()), 0.5 * memory.front()) << "while nothing ran on the node";
  EXPECT_GT(memory.back(), 0.5 * memory.front());
  expect_learned("lenet-1");
}

TEST_F(Emulate, RolesCanBeKilledAndStoppedWithoutNodes) {
  const Ended ended = run(train("lr", {"--seconds", "3", "--workers", "2", "--strategy", "allreduce", "--faults",
                                       "at 500ms stop worker:1 for 200ms; at 1s kill worker:1"}));
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(faults_in(get_file(folder / "runs/lr-1/faults.jsonl")),
              ElementsAre("stop worker:1 for 0.2s", "worker:1 goes on", "kill worker:1"));
  EXPECT_GT(summary("lr-1").value("test_accuracy", 0.0), 0.97);
}

TEST_F(Emulate, NothingIsLeftAfterKillOnceTheNextHasBegun) {
  Process process(program_path(), train("lenet", {"--epochs", "1000", "--workers", "2", "--emulate", nodes()}),
                  options());
  ASSERT_TRUE(process.wait_for("2/1,000"));
  const std::vector<std::string> here = left("lockstep-");
  process.signal(SIGKILL);
  (void)process.finish();
  ASSERT_GE(here.size(), 7U) << "a switch, three nodes and their groups";
  (void)succeed(train("lr", {"--epochs", "1", "--emulate", "cores=0.5", "--quiet"}));
  // Other tests make and remove clusters at the same time; names with the dead launcher's number belong to it.
  std::string prefix;
  for (const std::string& path : here) {
    const std::string name = fs::path(path).filename();
    const std::string owner = name.substr(0, name.find('-', 9) + 1);
    if (!fs::exists("/proc/" + owner.substr(9, owner.size() - 10))) prefix = owner;
  }
  ASSERT_NE(prefix, "");
  EXPECT_THAT(left(prefix), IsEmpty());
}

TEST_F(Emulate, NothingIsLeftOfOneThatIsEndedWhileItMakesItsNodes) {
  Process process(program_path(), train("lr", {"--epochs", "1000", "--workers", "2", "--emulate", nodes()}), options());
  const std::string prefix = fmt::format("lockstep-{}-", process.pid());
  const std::string status = fmt::format("/proc/{}/status", process.pid());
  const auto ended = [&] { return get_file(status).find("zombie") != std::string::npos; };
  bool begun = false;
  while (!begun && !ended()) {
    begun = !left(prefix).empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!begun) FAIL() << process.finish().err;
  process.signal(SIGTERM);
  (void)process.finish();
  EXPECT_THAT(left(prefix), IsEmpty());
}

/// Returns the share of this machine's cores, as --emulate takes it.
std::string part_of_cores(double part) { return fmt::format("cores={}", part * base::available_cores()); }

TEST_F(Emulate, TrainingsAtTheSameTimeAreAddedUp) {
  const double host = base::available_cores();
  const Words two{"--epochs", "1", "--workers", "2", "--strategy", "allreduce", "--emulate", part_of_cores(0.25)};
  Process first(program_path(), train("lr", {"--epochs", "100000", "--emulate", part_of_cores(0.75)}), options());
  ASSERT_TRUE(first.wait_for("2/100000"));
  EXPECT_THAT(fail(train("lr", two), 2),
              AllOf(HasSubstr(fmt::format("emulate: 2 nodes x {} cores = {} cores, and of the {} cores of this machine "
                                          "other emulated clusters have {}: process {} (",
                                          0.25 * host, 0.5 * host, host, 0.75 * host, first.pid())),
                    HasSubstr("train lr --dataset synthetic"), HasSubstr(fmt::format("`kill -INT {}`", first.pid()))));
  (void)succeed(train("lr", {"--epochs", "1", "--emulate", part_of_cores(0.25)}));
  put_file(folder / "tiny.yaml", bytes_of(fmt::format("name: tiny\nbase: {{model: lr, dataset: synthetic}}\n"
                                                      "cluster: {{emulate: {{cores: {}}}}}\n",
                                                      0.5 * host)));
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml"}, 2), HasSubstr(fmt::format("process {} (", first.pid())));
  first.signal(SIGINT);
  EXPECT_EQ(first.finish().code, 130);
  (void)succeed(train("lr", two));
}

TEST_F(Emulate, ALabHasItsNodesFromTheFirstRunToTheLast) {
  const std::string small = "{label: small, seconds: 1000000}";  // it would not end by itself
  const std::string large = "{label: large, seconds: 0.1, workers: 2, strategy: allreduce}";
  for (const bool first : {true, false}) {
    const std::string name = first ? "first" : "last";
    put_file(folder / (name + ".yaml"),
             bytes_of(fmt::format("name: {}\nbase: {{model: lr, dataset: synthetic, epochs: 0}}\n"
                                  "cluster: {{emulate: {}}}\ncases: [{}, {}]\n",
                                  name, part_of_cores(0.5), first ? small : large, first ? large : small)));
    Process lab(program_path(), {"lab", "run", name + ".yaml"}, options());
    ASSERT_TRUE(lab.wait_for(first ? "run 1 of 2" : "run 2 of 2"));
    // This run has half of the machine; the lab has all of it.
    EXPECT_THAT(fail(train("lr", {"--epochs", "1", "--emulate", part_of_cores(0.5)}), 2),
                AllOf(HasSubstr(fmt::format("process {} (", lab.pid())), HasSubstr("lab run " + name + ".yaml")));
    const std::string prefix = fmt::format("lockstep-{}-", lab.pid());
    lab.signal(SIGINT);
    const Ended ended = lab.finish();
    EXPECT_EQ(ended.code, 130) << ended.out << ended.err;
    EXPECT_THAT(left(prefix), IsEmpty());
  }
}

TEST_F(Emulate, ARefusedRunLeavesTheOneThatIsThereAsItIs) {
  (void)succeed(train("lr", {"--epochs", "1", "--emulate", "cores=0.5", "--quiet", "--run-dir", "there"}));
  const std::string before = get_file(folder / "there/nodes.json");
  EXPECT_THAT(before, HasSubstr("0.5"));
  (void)fail(train("lr", {"--epochs", "1", "--emulate", "cores=0.25", "--quiet", "--run-dir", "there"}), 2);
  EXPECT_EQ(get_file(folder / "there/nodes.json"), before);
}

TEST_F(Emulate, WhatCannotBeIsOneLine) {
  const auto said = [&](const Words& more) { return fail(train("lr", more), 2); };
  EXPECT_THAT(said({"--workers", "3", "--ps", "1", "--emulate", "cores=100"}),
              HasSubstr("4 nodes x 100 cores = 400 cores, and this machine has "));
  EXPECT_THAT(said({"--emulate", "cores=fast"}), HasSubstr("fast is not allowed"));
  EXPECT_THAT(said({"--workers", "2", "--faults", "at 1s cut node1"}), HasSubstr("only the nodes of --emulate"));
  EXPECT_THAT(said({"--workers", "2", "--emulate", "on", "--faults", "at 1s cut node9 for 1s"}),
              HasSubstr("there is no node9"));
  EXPECT_THAT(said({"--workers", "2", "--faults", "at 1s kill worker:2"}),
              HasSubstr("there is no worker:2 (did you mean 'worker:0'?); there are ps:0, worker:0, worker:1"));
  EXPECT_THAT(said({"--faults", "at 1s kill worker:2"}), HasSubstr("add --workers"));
  EXPECT_THAT(said({"--workers", "2", "--strategy", "allreduce", "--collective", "mpi", "--emulate", "on"}),
              HasSubstr("--emulate: not with --collective mpi"));
  EXPECT_THAT(said({"--workers", "2", "--emulate", "on", "--cpu-quota", "0.5"}), HasSubstr("not with --emulate"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

}  // namespace
}  // namespace lockstep::testing
