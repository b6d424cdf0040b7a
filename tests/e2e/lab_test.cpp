// lockstep lab with real trainings: interrupted, killed, failing, continued.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <sstream>
#include <thread>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

const std::string kTiny =
    "name: tiny\n"
    "title: A tiny experiment\n"
    "retries: 0\n"
    "base: {model: lr, dataset: synthetic, train_limit: 500, test_limit: 100, epochs: 1, threads: 1}\n";
const std::string kThree = kTiny + "grid: {batch: [10, 20, 50]}\n";
/// Three runs, the second of which takes this many seconds.
std::string with_slow(const std::string& seconds) {
  return kTiny + "groups: [{name: fast}, {name: slow, base: {epochs: 0, seconds: " + seconds +
         "}}, {name: last, base: {batch: 7}}]\n";
}

class Lab : public ProgramTest {
 protected:
  void put(const std::string& text, const std::string& name = "tiny.yaml") const {
    put_file(folder / name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  [[nodiscard]] json exported() const { return json::parse(succeed({"lab", "export", "tiny", "--to", "json"}).out); }
  [[nodiscard]] std::map<std::string, std::string> states() const {
    std::map<std::string, std::string> result;
    const json all = exported();
    for (const json& run : all["runs"]) result[run["key"]] = run["state"];
    return result;
  }
  /// Distinguishes a folder from another one of the same name.
  [[nodiscard]] std::string identity(const std::string& key) const {
    struct stat status {};
    const std::string path = folder / ("lab/tiny/runs/" + key + "/summary.json");
    if (::stat(path.c_str(), &status) != 0) return "";
    return std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }
  void wait_for_file(const std::string& name) const {
    for (int i = 0; i < 12000 && !exists(name); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(exists(name)) << name;
  }
  /// Starts the lab and waits until the slow run, which would not end, trains.
  [[nodiscard]] std::unique_ptr<Process> start_slow() const {
    put(with_slow("1000000"));
    auto process = std::make_unique<Process>(program_path(), Words{"lab", "run", "tiny.yaml"}, options());
    EXPECT_TRUE(process->wait_for("run 2 of 3"));
    wait_for_file("lab/tiny/runs/" + kSlowKey + "/config.yaml");
    return process;
  }
  const std::string kFastKey = "fast-r1";
  const std::string kSlowKey = "slow-r1";
  const std::string kLastKey = "last-r1";
};

TEST_F(Lab, RunsAnExperimentAndReports) {
  put(kThree);
  const Ended ended = succeed({"lab", "run", "tiny.yaml"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("A tiny experiment: 3 runs"), HasSubstr("[3/3] tiny-batch=50-r1  accuracy "),
                               HasSubstr("3 runs done"), HasSubstr("report: lab/tiny/report.html")));
  EXPECT_THAT(get_file(folder / "lab/tiny/report.html"), HasSubstr("A tiny experiment"));
  EXPECT_EQ(get_file(folder / "lab/tiny/experiment.yaml"), kThree);
  EXPECT_TRUE(exists("lab/tiny/runs/tiny-batch=20-r1/monitor.csv"));
  EXPECT_THAT(get_file(folder / "lab/tiny/logs/tiny-batch=20-r1.log"), HasSubstr("lr on synthetic"));
  EXPECT_THAT(succeed({"lab", "list"}).out, HasSubstr("tiny"));
  EXPECT_THAT(succeed({"lab", "show", "tiny"}).out, AllOf(HasSubstr("tiny-batch=10-r1"), HasSubstr("done")));
  EXPECT_EQ(succeed({"lab", "report", "tiny", "-o", "page.html"}).out, "page.html\n");
  EXPECT_EQ(succeed({"lab", "report", "tiny", "--measure", "-o", "page.html"}).out,
            "3 runs measured again\npage.html\n");
  EXPECT_TRUE(exists("page.html"));
  EXPECT_FALSE(exists("lab/tiny/warm-up"));
}

TEST_F(Lab, WhatIsFinishedIsNotMadeAgainUnlessAsked) {
  put(kThree);
  (void)succeed({"lab", "run", "tiny.yaml"});
  const std::string before = identity("tiny-batch=10-r1");
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("0 runs done, 3 done before"));
  EXPECT_EQ(identity("tiny-batch=10-r1"), before);
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--again", "--only", "*=10-*"}).out, HasSubstr("1 run done"));
  EXPECT_NE(identity("tiny-batch=10-r1"), before);
}

TEST_F(Lab, OnlyChoosesRunsByTheirKeys) {
  put(kThree);
  (void)succeed({"lab", "run", "tiny.yaml", "--only", "*=10-r1", "--only", "tiny-batch=5*"});
  EXPECT_EQ(states(),
            (std::map<std::string, std::string>{
                {"tiny-batch=10-r1", "done"}, {"tiny-batch=20-r1", "planned"}, {"tiny-batch=50-r1", "done"}}));
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml", "--only", "tiny-batch=11-r1"}, 2),
              HasSubstr("no run is called 'tiny-batch=11-r1' (did you mean 'tiny-batch=10-r1'?)"));
}

TEST_F(Lab, OnlyChoosesRunsByTheLabelsThatAreShown) {
  put(kTiny + "cases: [{label: in one go, batch: 10}, {label: all of it, batch: 20}]\n");
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--only", "in one go"}).out, HasSubstr("1 run done"));
  EXPECT_EQ(states(),
            (std::map<std::string, std::string>{{"tiny-batch=10-r1", "done"}, {"tiny-batch=20-r1", "planned"}}));
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml", "--only", "two hosts"}, 2),
              HasSubstr("no run is called 'two hosts' (there are 'tiny-batch=10-r1', 'in one go', 'tiny-batch=20-r1', "
                        "...)"));
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml", "--only", "all of*"}, 2), HasSubstr("no run is called 'all of*'"));
}

TEST_F(Lab, RunsThatAreNotChosenKeepTheirResults) {
  put(kThree);
  (void)succeed({"lab", "run", "tiny.yaml"});
  const std::string before = identity("tiny-batch=20-r1");
  const Ended ended = succeed({"lab", "run", "tiny.yaml", "--only", "*=10-r1", "--set", "lr=0.25"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("A tiny experiment: 1 run\n"), HasSubstr("1 run done\n")));
  const json runs = exported()["runs"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0]["settings"]["lr"], "0.25");
  EXPECT_FALSE(runs[1]["settings"].contains("lr"));
  EXPECT_EQ(runs[1]["state"], "done");
  EXPECT_GT(runs[1]["measured"]["accuracy"], 0);
  EXPECT_EQ(identity("tiny-batch=20-r1"), before);
}

TEST_F(Lab, ALogThatCannotBeWrittenIsAWarning) {
  put(kTiny);
  std::filesystem::create_directories(folder / "lab/tiny/logs/tiny-r1.log");
  const Ended ended = run({"lab", "run", "tiny.yaml"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("warning: cannot write lab/tiny/logs/tiny-r1.log"));
  EXPECT_EQ(states()["tiny-r1"], "done");
}

TEST_F(Lab, ADryRunOnlyLooks) {
  put(kThree);
  const Ended ended = succeed({"lab", "run", "tiny.yaml", "--dry-run"});
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("tiny-batch=20"), HasSubstr("one process"), HasSubstr("3 runs to do, estimated time ")));
  EXPECT_FALSE(exists("lab"));
  const json plan = json::parse(succeed({"lab", "run", "tiny.yaml", "--dry-run", "--json"}).out);
  EXPECT_EQ(plan["runs"].size(), 3U);
  EXPECT_EQ(plan["runs"][2]["settings"]["batch"], "50");
  EXPECT_GT(plan["estimated_seconds"], 0);
}

TEST_F(Lab, AWrongFileIsRefusedBeforeAnythingRuns) {
  put(kTiny + "grid: {batch: [10, x]}\n");
  EXPECT_EQ(fail({"lab", "run", "tiny.yaml"}, 2),
            "lockstep: tiny.yaml:5:20: batch: 'x' is not allowed; it takes a whole number from 1 to 10000000\n");
  EXPECT_FALSE(exists("lab"));
}

TEST_F(Lab, CtrlCEndsTheRunUnderWayAndTheNextStartGoesOn) {
  const std::unique_ptr<Process> process = start_slow();
  process->signal(SIGINT);
  const Ended ended = process->finish();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("1 run done; `lockstep lab run tiny.yaml` runs the rest"));
  const std::string fast = identity(kFastKey);
  EXPECT_NE(fast, "");
  EXPECT_FALSE(exists("lab/tiny/runs/" + kSlowKey)) << "a broken run is removed";
  EXPECT_EQ(states()[kSlowKey], "planned");

  put(with_slow("1"));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("2 runs done, 1 done before"));
  EXPECT_EQ(identity(kFastKey), fast);
  EXPECT_EQ(states()[kSlowKey], "done");
}

/// Returns the state of a process in /proc, such as 'T' for a stopped one, and its parent.
std::pair<char, pid_t> state_of(pid_t pid) {
  const std::string stat = get_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > stat.size()) return {'?', 0};
  return {stat[name_end + 2], static_cast<pid_t>(std::atoi(stat.c_str() + name_end + 4))};
}

bool becomes(pid_t pid, bool stopped) {
  for (int i = 0; i < 12000; ++i) {
    if ((state_of(pid).first == 'T') == stopped) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

pid_t child_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (pid > 0 && state_of(pid).second == parent) return pid;
  }
  return 0;
}

TEST_F(Lab, CtrlZStopsTheTrainingToo) {
  const std::unique_ptr<Process> process = start_slow();
  const pid_t training = child_of(process->pid());
  ASSERT_GT(training, 0);
  process->signal(SIGTSTP);
  EXPECT_TRUE(becomes(process->pid(), true));
  EXPECT_EQ(state_of(training).first, 'T') << "it stops before the lab does";
  process->signal(SIGCONT);
  EXPECT_TRUE(becomes(training, false));
  process->signal(SIGINT);
  EXPECT_EQ(process->finish().code, 130);
}

TEST_F(Lab, WhatIsMadeAgainStaysUntilThereIsAnother) {
  put(with_slow("1"));
  (void)succeed({"lab", "run", "tiny.yaml"});
  std::string before = identity(kSlowKey);
  const Words again{"lab", "run", "tiny.yaml", "--again", "--only", kSlowKey};
  for (const int signal : {SIGINT, SIGKILL}) {
    Ended ended;
    for (int attempt = 0; attempt < 10; ++attempt) {
      Process process(program_path(), again, options());
      wait_for_file("lab/tiny/runs/" + kSlowKey + ".new/config.yaml");
      process.signal(signal);
      ended = process.finish();
      if (ended.code != 0) break;
      before = identity(kSlowKey);  // an earlier folder existed before the signal
    }
    EXPECT_EQ(ended.code, 128 + signal) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(signal == SIGINT ? "--again` repeats all runs" : ""));
    EXPECT_EQ(identity(kSlowKey), before);
    EXPECT_EQ(states()[kSlowKey], "done");
    EXPECT_GT(exported()["runs"][1]["measured"]["accuracy"], 0);
  }
  (void)succeed(again);
  EXPECT_NE(identity(kSlowKey), before);
  EXPECT_FALSE(exists("lab/tiny/runs/" + kSlowKey + ".new"));
}

/// Programs that use a core each, until the object's end.
class BusyPrograms {
 public:
  explicit BusyPrograms(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", "while :; do :; done", nullptr);
        _exit(1);
      }
      pids_.push_back(pid);
    }
  }
  ~BusyPrograms() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  BusyPrograms(const BusyPrograms&) = delete;
  BusyPrograms& operator=(const BusyPrograms&) = delete;

 private:
  std::vector<pid_t> pids_;
};

TEST_F(Lab, ARunBesideABusyProgramIsMadeAgainAndMarked) {
  put(with_slow("0.5"));
  const BusyPrograms busy(std::thread::hardware_concurrency() / 4 + 1);
  const Ended ended = succeed({"lab", "run", "tiny.yaml", "--only", kSlowKey, "--retries", "1"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("slow-r1  disturbed: other programs used"), HasSubstr("; try 2 of 2"),
                               HasSubstr("1 run done\n1 run disturbed")));
  EXPECT_THAT(exported()["runs"][1]["measured"]["disturbed"], 1);
  EXPECT_THAT(succeed({"lab", "show", "tiny"}).out, HasSubstr("slow-r1 disturbed: other programs used"));
  EXPECT_THAT(get_file(folder / "lab/tiny/report.html"), HasSubstr("1 of 1 run was disturbed."));
  EXPECT_FALSE(exists("lab/tiny/runs/" + kSlowKey + ".new"));
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml", "--retries", "21"}, 2), HasSubstr("it takes 0 to 20"));
}

TEST_F(Lab, AGridThatGrowsMakesOnlyWhatIsNew) {
  put(kTiny + "grid: {batch: [10]}\n");
  (void)succeed({"lab", "run", "tiny.yaml"});
  put(kThree);
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run"}).out, HasSubstr("2 runs to do"));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("2 runs done, 1 done before"));
}

TEST_F(Lab, ADryRunKnowsThatAnotherClusterIsAnotherRun) {
  const std::string two = kTiny + "cases: [{label: two, workers: 2}]\n";
  put(two);
  (void)succeed({"lab", "run", "tiny.yaml"});
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run"}).out, HasSubstr("0 runs to do"));
  put(two + "cluster: {faults: at 30s stop worker:1 for 1s}\n");
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run"}).out, HasSubstr("1 run to do"));
}

TEST_F(Lab, TheCommandToRunItAgainIsFitForAShell) {
  put(kTiny, "a tiny one.yaml");
  (void)succeed({"lab", "run", "a tiny one.yaml", "--lab-dir", "it's", "--set", "batch=50", "--only", "tiny*"});
  EXPECT_THAT(json::parse(succeed({"lab", "export", "tiny", "--lab-dir", "it's", "--to", "json"}).out)["command"],
              "lockstep lab run 'a tiny one.yaml' --only 'tiny*' --lab-dir 'it'\\''s' --set batch=50");
}

TEST_F(Lab, AfterKillTheBrokenRunIsRepeatedAndNoOther) {
  const std::unique_ptr<Process> process = start_slow();
  process->signal(SIGKILL);
  EXPECT_EQ(process->finish().code, 137);
  EXPECT_EQ(states()[kSlowKey], "planned") << "nobody is there who would run it";
  const std::string fast = identity(kFastKey);
  put(with_slow("1"));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("2 runs done, 1 done before"));
  EXPECT_EQ(identity(kFastKey), fast);
  EXPECT_EQ(states(), (std::map<std::string, std::string>{{kFastKey, "done"}, {kSlowKey, "done"}, {kLastKey, "done"}}));
}

TEST_F(Lab, TwoLabsDoNotRunTheSameExperiment) {
  const std::unique_ptr<Process> process = start_slow();
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml"}, 2), HasSubstr("another lab is running tiny in lab"));
  EXPECT_EQ(states()[kSlowKey], "running");
  process->signal(SIGINT);
  EXPECT_EQ(process->finish().code, 130);
}

TEST_F(Lab, AFailedRunIsRecordedTheRestGoesOnAndItIsRepeated) {
  put(kTiny + "cases: [{label: good}, {label: bad, dataset: missing.npz}, {label: last, batch: 7}]\n");
  const Ended ended = run({"lab", "run", "tiny.yaml"});
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, HasSubstr("1 of 3 runs failed"));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("failed: "), HasSubstr("missing.npz"), HasSubstr("2 runs done, 1 failed")));
  const json all = exported();
  ASSERT_EQ(all["runs"].size(), 3U);
  for (const json& each : all["runs"]) {
    EXPECT_EQ(each["state"], each["label"] == "bad" ? "failed" : "done");
    EXPECT_THAT(each["reason"].get<std::string>(), HasSubstr(each["label"] == "bad" ? "missing.npz" : ""));
    const std::string failure = "lab/tiny/logs/" + each["key"].get<std::string>() + ".failure.json";
    EXPECT_EQ(exists(failure), each["label"] == "bad");
    if (exists(failure)) {
      EXPECT_EQ(json::parse(get_file(folder / failure))["text"], each["reason"]);
    }
  }
  const std::string shown = succeed({"lab", "show", "tiny"}).out;
  EXPECT_THAT(shown, AllOf(HasSubstr("bad failed: "), HasSubstr("log: lab/tiny/logs/"),
                           HasSubstr("to repeat: lockstep lab run tiny.yaml")));
  EXPECT_THAT(shown, Not(HasSubstr(kLastKey))) << "labels are enough, and short";
  const std::string roles = succeed({"lab", "export", "tiny", "--workers"}).out;
  EXPECT_EQ(std::count(roles.begin(), roles.end(), '\n'), 4) << roles;
  EXPECT_THAT(roles, HasSubstr(",failed,"));
  EXPECT_THAT(run({"lab", "run", "tiny.yaml"}).out, HasSubstr("0 runs done, 2 done before, 1 failed"));
}

TEST_F(Lab, ARunFolderThatIsDeletedLeavesWhatWasMeasured) {
  put(kThree);
  (void)succeed({"lab", "run", "tiny.yaml"});
  std::filesystem::remove_all(folder / "lab/tiny/runs/tiny-batch=20-r1");
  EXPECT_THAT(succeed({"lab", "show", "tiny"}).out, HasSubstr("1 run folder gone"));
  (void)succeed({"lab", "report", "tiny"});
  EXPECT_GT(exported()["runs"][1]["measured"]["accuracy"], 0);
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("3 done before"));
}

TEST_F(Lab, ARunFolderThatDisappearsWhileItTrainsIsAFailedRun) {
  const std::unique_ptr<Process> process = start_slow();
  std::filesystem::rename(folder / ("lab/tiny/runs/" + kSlowKey), folder / "elsewhere");
  const Ended ended = process->finish();
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_EQ(states(),
            (std::map<std::string, std::string>{{kFastKey, "done"}, {kSlowKey, "failed"}, {kLastKey, "done"}}));
}

/// Returns the cells of a line; these files have no quotes.
Words cells(const std::string& line) {
  Words result;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) result.push_back(cell);
  return result;
}

TEST_F(Lab, ExportsReadBack) {
  put(kTiny + "cases: [{label: two, workers: 2, tags: {nodes: 2}}]\n");
  (void)succeed({"lab", "run", "tiny.yaml"});
  const json roles = json::parse(succeed({"lab", "export", "tiny", "--to", "json", "--workers"}).out);
  EXPECT_EQ(roles["runs"][0]["roles"].size(), 3U);
  EXPECT_EQ(roles["runs"][0]["tags"]["nodes"], "2");

  (void)succeed({"lab", "export", "tiny", "-o", "tiny.csv"});
  std::istringstream stream(get_file(folder / "tiny.csv"));
  std::string header;
  std::string line;
  std::getline(stream, header);
  std::getline(stream, line);
  const Words names = cells(header);
  const auto at = [&](const std::string& name) {
    return cells(line).at(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
  };
  EXPECT_EQ(at("label"), "two");
  EXPECT_EQ(at("tag.nodes"), "2");
  EXPECT_EQ(at("setting.workers"), "2");
  EXPECT_EQ(std::stod(at("accuracy")), roles["runs"][0]["measured"]["accuracy"].get<double>());

  const std::string workers = succeed({"lab", "export", "tiny", "--workers"}).out;
  EXPECT_EQ(std::count(workers.begin(), workers.end(), '\n'), 4);
  EXPECT_THAT(succeed({"lab", "export", "tiny", "--long"}).out, HasSubstr("tiny-r1,worker:1,iterations,"));
  EXPECT_THAT(fail({"lab", "export", "tiny", "--to", "parquet"}, 2), HasSubstr("it takes csv, json, markdown"));

  EXPECT_THAT(succeed({"lab", "export", "tiny", "--to", "latex"}).out, HasSubstr("\\toprule"));
  (void)succeed({"lab", "export", "tiny", "--to", "pdf", "--width", "85", "--font", "serif", "-o", "figures"});
  size_t plots = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "figures")) {
    EXPECT_THAT(get_file(entry.path()), ::testing::StartsWith("%PDF")) << entry.path();
    ++plots;
  }
  EXPECT_GE(plots, 3U);
  EXPECT_THAT(fail({"lab", "export", "tiny", "--to", "svg"}, 2), HasSubstr("give a folder"));
  EXPECT_THAT(fail({"lab", "export", "tiny", "--width", "85"}, 2), HasSubstr("add --to svg"));
}

TEST_F(Lab, ALabThatIsNotThereIsOneLine) {
  EXPECT_THAT(fail({"lab", "list"}, 2), HasSubstr("no experiment has been run there"));
  put("no database", "lab.sqlite");
  EXPECT_THAT(fail({"lab", "list", "--lab-dir", "."}, 1), HasSubstr("lab.sqlite: is damaged"));
}

TEST_F(Lab, ATerminalSeesABarWithTheTimeLeft) {
  put(with_slow("1"));
  ProcessOptions terminal = options();
  terminal.terminal = true;
  const Ended ended = lockstep({"lab", "run", "tiny.yaml", "--only", kSlowKey}, terminal);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("run 1 of 1"), HasSubstr(" left"), HasSubstr("report: ")));
}

}  // namespace
}  // namespace lockstep::testing
