// show, why and compare on runs that the program made, and on the remains of runs that ended badly.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "e2e/support.h"
#include "records/run_folders.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class RecordsTest : public ProgramTest {
 protected:
  void train_both() const {
    (void)succeed(quick_train("lr", {"--log-every", "5", "--eval-every", "10", "--quiet", "--name", "alone"}));
    (void)succeed(quick_train("lr", {"--log-every", "5", "--quiet", "--name", "both", "--workers", "2"}));
  }
  /// Returns its output at this width; no line may be wider or end in a space.
  [[nodiscard]] std::string shown(const Words& words, const std::string& columns = "100") const {
    ProcessOptions wanted = options();
    wanted.environment = {{"COLUMNS", columns}, {"LC_ALL", "C"}};
    const Ended ended = lockstep(words, wanted);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_THAT(ended.out, Not(HasSubstr("\x1b")));
    return ended.out;
  }
  /// Returns the output of `why`.
  [[nodiscard]] nlohmann::json reason(const std::string& run) const {
    return nlohmann::json::parse(shown({"why", run, "--json"}));
  }
  void cut(const std::string& file) const {
    const std::string text = get_file(folder / file);
    put_text(folder / file, text.substr(0, text.size() * 2 / 3));
  }
};

TEST_F(RecordsTest, ShowsARunAtAGlance) {
  train_both();
  const std::string one = shown({"show", "alone-1"});
  EXPECT_THAT(one, StartsWith("alone-1  lr on synthetic, one process, batch 50\n"));
  EXPECT_THAT(one, AllOf(HasSubstr("ended at step 40 (epochs)"), HasSubstr("test accuracy"), HasSubstr("2 epochs"),
                         HasSubstr("loss  ** training  ++ evaluation"), HasSubstr("accuracy  ** training  ++ eval")));
  EXPECT_THAT(one, AllOf(HasSubstr("where the time went"), HasSubstr("forward"), HasSubstr("peaks of")));
  EXPECT_THAT(one, HasSubstr("lockstep why runs/alone-1\n"));
  const std::string cluster = shown({"show"});
  EXPECT_THAT(cluster, StartsWith("both-1  lr on synthetic, 2 workers and 1 server (ps, sync), batch 50 each\n"));
  EXPECT_THAT(cluster, AllOf(HasSubstr("\nworker:0 "), HasSubstr("\nworker:1 "), HasSubstr("\nps:0")));
  EXPECT_THAT(cluster, ::testing::ContainsRegex("\nps:0 +20 "));  // the steps that it made
  EXPECT_THAT(cluster, AllOf(HasSubstr("> push"), HasSubstr("< pull"), HasSubstr("a apply"), HasSubstr("wire out")));
}

TEST_F(RecordsTest, FitsTheTerminal) {
  write_cluster_run(folder / "runs/lr-1");
  write_cluster_run(folder / "runs/lr-2");
  for (const std::string columns : {"60", "80", "100", "140", "200"}) {
    for (const Words& words : {Words{"show", "lr-1"}, Words{"why", "lr-1", "--against", "lr-2"},
                               Words{"compare", "lr-1", "lr-2", "lr-1", "lr-2"}}) {
      std::istringstream lines(shown(words, columns));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), std::stoul(columns)) << words[0] << ": " << line;
        EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
        EXPECT_THAT(line, Not(::testing::MatchesRegex("(%|ms|us|MB/s|MB)[ .,;:)].*"))) << "a unit without its number";
      }
    }
  }
  EXPECT_THAT(shown({"show", "lr-1"}, "60"), HasSubstr("\nloss  **"));
}

TEST_F(RecordsTest, ThePlaceOfRolesIsAColumnWhereTheyAreOnSeveral) {
  train_both();
  const std::string cluster = shown({"show", "both-1"});
  EXPECT_THAT(cluster, Not(HasSubstr("role      host")));
  EXPECT_THAT(cluster, ::testing::ContainsRegex("\nrole +iterations .* wire in +wire out\n"));
  write_cluster_run(folder / "runs/lr-1");
  EXPECT_THAT(shown({"show", "lr-1"}), HasSubstr("role      host"));
}

TEST_F(RecordsTest, ShowsEverythingOfAFullyRecordedCluster) {
  write_cluster_run(folder / "runs/lr-1");
  const std::string text = shown({"show", "lr-1"});
  EXPECT_THAT(text, AllOf(HasSubstr("where the time went"), HasSubstr("wait for others"), HasSubstr("apply"),
                          HasSubstr("peaks of"), HasSubstr("wire in"), HasSubstr("north"), HasSubstr("south")));
  EXPECT_THAT(text, HasSubstr("f forward"));
  const auto json = nlohmann::json::parse(shown({"show", "lr-1", "--json"}));
  EXPECT_EQ(json["roles"].size(), 3);
  EXPECT_EQ(json["roles"][0]["phases"][1]["phase"], "pull");
  EXPECT_EQ(json["roles"][0]["resources"]["cpu_percent"]["max"], 101);
  EXPECT_EQ(json["evaluations"]["accuracy"]["accuracy"][1], 0.892);
}

TEST_F(RecordsTest, SaysWhatLimitedARun) {
  train_both();
  const std::string why = shown({"why", "both-1", "--against", "alone-1"});
  EXPECT_THAT(why, StartsWith("both-1  lr on synthetic, 2 workers"));
  EXPECT_THAT(why, HasSubstr("against alone-1"));
  EXPECT_THAT(why, HasSubstr("an efficiency of "));
  const auto json = nlohmann::json::parse(shown({"why", "both-1", "--against", "alone-1", "--json"}));
  EXPECT_FALSE(json["headline"].get<std::string>().empty());
  EXPECT_FALSE(json["sentences"].empty());
  EXPECT_GT(json["against"]["speed_up"].get<double>(), 0);
  EXPECT_FALSE(json["against"]["phases"].empty());
  write_cluster_run(folder / "runs/lr-1");
  EXPECT_THAT(shown({"why", "lr-1"}), HasSubstr("exchanging gradients"));
}

TEST_F(RecordsTest, SetsRunsSideBySide) {
  train_both();
  for (const std::string over : {"steps", "seconds", "epochs"}) {
    const std::string text = shown({"compare", "alone-1", "runs/both-1", "--over", over});
    EXPECT_THAT(text, AllOf(HasSubstr("settings that differ\n"), HasSubstr("\nworkers "), HasSubstr("\nspeed-up "),
                            HasSubstr("\ntest accuracy "), HasSubstr("** alone-1  ++ both-1"),
                            HasSubstr(over == "seconds" ? "  time  " : over)));
    EXPECT_THAT(text, Not(HasSubstr("run_dir")));
  }
}

TEST_F(RecordsTest, ManyRunsAreComparedInSeveralTables) {
  Words words{"compare"};
  for (int i = 1; i <= 12; ++i) {
    write_cluster_run(folder / fmt::format("runs/lr-with-a-long-name-{}", i));
    words.push_back(fmt::format("lr-with-a-long-name-{}", i));
  }
  std::istringstream lines(shown(words));
  size_t tables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("speed-up ")) ++tables;
    if (!line.starts_with("lr-with")) {
      EXPECT_LE(line.size(), 100) << line;
    }
  }
  EXPECT_GE(tables, 3);
}

TEST_F(RecordsTest, ReadsWhatAKillHasLeft) {
  train_both();
  fs::remove(folder / "runs/both-1/summary.json");
  for (const char* file : {"steps.csv", "evals.csv", "worker-1/steps.csv", "worker-1/summary.json", "cluster.yaml"}) {
    cut(std::string("runs/both-1/") + file);
  }
  const std::string text = shown({"show", "both-1"});
  EXPECT_THAT(text, HasSubstr("killed after step "));
  EXPECT_THAT(text, HasSubstr("cannot read everything: runs/both-1/worker-1/summary.json: not a JSON object"));
  EXPECT_THAT(reason("both-1")["sentences"].dump(), HasSubstr("The run left no summary"));
  EXPECT_THAT(shown({"compare", "alone-1", "both-1"}), HasSubstr("speed-up"));
  put_text(folder / "runs/alone-1/steps.csv", "step,loss\n1,1e308\n2,-1e308\n3,nan\n");
  put_text(folder / "runs/alone-1/evals.csv", "");
  put_text(folder / "runs/alone-1/config.yaml", "\xff\xfe");
  (void)shown({"show", "alone-1"});
  (void)shown({"why", "alone-1"});
  (void)shown({"compare", "alone-1", "both-1", "--over", "seconds"});
}

TEST_F(RecordsTest, ARunThatWasResumedAndKilledIsShownAsFarAsItGot) {
  (void)succeed(quick_train("lr", {"--log-every", "10", "--quiet"}));
  Process process(program_path(), {"train", "--resume", "lr-1", "--epochs", "1000000", "--log-every", "10"}, options());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (get_file(folder / "runs/lr-1/steps.csv").find("\n100,") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(shown({"show", "lr-1"}), HasSubstr("still training, at step "));
  process.signal(SIGKILL);
  (void)process.finish();
  const std::string text = shown({"show", "lr-1"});
  EXPECT_THAT(text, AllOf(HasSubstr("it left no summary since it was resumed"), Not(HasSubstr("step 40:")),
                          HasSubstr("of steps.csv)")));
  const auto json = nlohmann::json::parse(shown({"show", "lr-1", "--json"}));
  EXPECT_EQ(json["state"], "broken");
  EXPECT_GE(json["steps"], 100);
  EXPECT_THAT(reason("lr-1")["sentences"].dump(), HasSubstr("no summary since it was resumed"));
}

// The cause that limits the following runs is known, also on a busy machine: its load is not examined.

TEST_F(RecordsTest, EvaluationsAfterEveryStepLimitARun) {
  (void)succeed(quick_train(
      "lr", {"--eval-every", "1", "--test-limit", "2000", "--eval-batch", "1", "--quiet", "--monitor-every", "0"}));
  const auto why = reason("lr-1");
  // An evaluation that is the best so far also writes a checkpoint.
  EXPECT_THAT(why["cause"], ::testing::AnyOf("evaluation", "checkpoint")) << why;
  EXPECT_LE(why["causes"][0]["step"], why["step"]) << why;
}

TEST_F(RecordsTest, ACpuQuotaLimitsARun) {
  if (const std::string why = why_not("cpu_quota"); !why.empty()) GTEST_SKIP() << why;
  const Ended ended = run(quick_train(
      "lenet", {"--workers", "2", "--cpu-quota", "0.1", "--log-every", "5", "--quiet", "--monitor-every", "0"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto why = reason("lenet-1");
  EXPECT_EQ(why["cause"], "quota") << why;
  EXPECT_THAT(why["sentences"][0].get<std::string>(), HasSubstr("was held back by its CPU quota of 0.1 cores for"));
  (void)succeed(quick_train("lr", {"--quiet"}));
  EXPECT_THAT(shown({"compare", "lr-1", "lenet-1"}),
              AllOf(::testing::ContainsRegex("\ncpu_quota +0 +0.1\n"), HasSubstr("\nheld back by quota")));
}

/// Returns the process of a role of a run in a folder; 0 while there is none.
pid_t process_of(const std::string& role, const std::string& working_folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string words = get_file(entry.path() / "cmdline");
    if (words.find("--task=" + role) == std::string::npos) continue;
    if (fs::read_symlink(entry.path() / "cwd", ignored) != fs::canonical(working_folder)) continue;
    return static_cast<pid_t>(std::stol(entry.path().filename().string()));
  }
  return 0;
}

/// Stops the process again and again, but lets it compute in between, however busy the machine is.
void hold_back(pid_t process, const std::atomic<bool>& over) {
  constexpr double kTurn = 0.002;
  constexpr int kLongestTurn = 200;  // for a process that itself waits
  while (!over && ::kill(process, SIGSTOP) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double before = cpu_seconds(process);
    ::kill(process, SIGCONT);
    for (int i = 0; i < kLongestTurn && !over && cpu_seconds(process) < before + kTurn; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST_F(RecordsTest, AWorkerThatIsHeldBackIsNamed) {
  std::atomic<bool> over{false};
  std::thread brake([&] {
    // Starts once it takes part: held up earlier, it could join too late for the others to wait.
    while (!over && !fs::exists(folder / "runs/lenet-1/worker-1/steps.csv")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (const pid_t slow = process_of("worker:1", folder.path()); slow != 0) hold_back(slow, over);
  });
  const Ended ended = run(quick_train("lenet", {"--workers", "2", "--epochs", "6", "--log-every", "5", "--quiet",
                                                "--monitor-every", "0", "--eval-every", "1000"}));
  over = true;
  brake.join();
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto why = reason("lenet-1");
  EXPECT_THAT(why["headline"].get<std::string>(), StartsWith("Waiting for worker:1 cost ")) << why;
}

TEST_F(RecordsTest, WrongRunsAreOneLine) {
  EXPECT_EQ(fail({"show"}, 2), "lockstep: no run in 'runs'; `lockstep train MODEL` starts one\n");
  EXPECT_EQ(fail({"why", "nix"}, 2), "lockstep: no run 'nix': neither that folder nor runs/nix exists\n");
  write_cluster_run(folder / "runs/lr-1");
  EXPECT_THAT(fail({"why", "lr-1", "--against", "nix"}, 2), HasSubstr("no run 'nix'"));
  EXPECT_THAT(fail({"compare", "lr-1"}, 2), HasSubstr("two or more runs"));
  EXPECT_THAT(fail({"compare", "lr-1", "lr-1", "--over", "epoch"}, 2), HasSubstr("did you mean 'epochs'?"));
  EXPECT_THAT(fail({"compare"}, 2), HasSubstr("RUN"));
}

TEST_F(RecordsTest, ColoursAndDotsAreForTerminals) {
  write_cluster_run(folder / "runs/lr-1");
  ProcessOptions terminal = options();
  terminal.terminal = true;
  terminal.environment = {{"LC_ALL", "C.UTF-8"}, {"TERM", "xterm"}, {"NO_COLOR", ""}};
  Process process(program_path(), {"show", "lr-1"}, terminal);
  const Ended ended = process.finish();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\x1b[36m"), HasSubstr("⠒⠒"), HasSubstr("█")));
}

}  // namespace
}  // namespace lockstep::testing
