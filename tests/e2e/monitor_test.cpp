// lockstep monitor -- COMMAND: the program runs undisturbed, and its usage is recorded and shown.
#include <csignal>
#include <sstream>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class MonitorProgram : public ProgramTest {};

TEST_F(MonitorProgram, TheProgramsOutputAndExitCodeAreItsOwnAndATableFollows) {
  // It runs until two samples were taken.
  const std::string script =
      "echo out; until [ \"$(cat monitor-sh-1.csv 2> /dev/null | wc -l)\" -ge 3 ]; do sleep 0.02; done; exit 9";
  const Ended ended = run({"monitor", "--every", "0.02", "--", "sh", "-c", script});
  EXPECT_EQ(ended.code, 9);
  EXPECT_EQ(ended.out, "out\n");
  EXPECT_THAT(ended.err, AllOf(HasSubstr("mean"), HasSubstr("p95"), HasSubstr("CPU"), HasSubstr("memory"),
                               HasSubstr("disk"), HasSubstr("network"), HasSubstr("monitor-sh-1.csv")));
  const std::vector<std::string> lines = lines_of(get_file(folder / "monitor-sh-1.csv"));
  ASSERT_GE(lines.size(), 3U);
  EXPECT_THAT(lines[0], StartsWith("time,seconds,cpu_percent,"));
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(lines[0].begin(), lines[0].end(), ','));
  }
}

TEST_F(MonitorProgram, AProgramThatEndsBeforeTheFirstSampleHasMemoryToo) {
  // It lives on for some times as long as it took until its memory was full.
  const std::string script =
      "import time; x = bytearray(b'x') * 200_000_000; time.sleep(0.2 + 8 * "
      "time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID))";
  const Ended ended = run({"monitor", "--every", "3600", "--", "python3", "-c", script});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const size_t at = ended.err.find("peak memory 2");
  EXPECT_THAT(ended.err.substr(std::min(at, ended.err.size())),
              ::testing::MatchesRegex("peak memory 2[0-9][0-9] MB.*\n"));
  EXPECT_THAT(ended.err, HasSubstr("\nmemory "));
}

TEST_F(MonitorProgram, AnEarlierFileIsNeverOverwritten) {
  EXPECT_EQ(run({"monitor", "--", "true"}).code, 0);
  EXPECT_EQ(run({"monitor", "--", "/bin/true"}).code, 0);
  EXPECT_THAT(folder.names(), ::testing::UnorderedElementsAre("monitor-true-1.csv", "monitor-true-2.csv"));
  EXPECT_EQ(run({"monitor", "--csv", "mine.csv", "--", "true"}).code, 0);
  EXPECT_THAT(fail({"monitor", "--csv", "mine.csv", "--", "true"}, 2), HasSubstr("'mine.csv' already exists"));
}

TEST_F(MonitorProgram, ArgumentsReachTheProgramAsTheyWereTyped) {
  const Ended ended = run({"monitor", "--", "printf", "%s|", "--every", "[a,b]", "--", "", "-h", "a b"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, "--every|[a,b]|--||-h|a b|");
}

TEST_F(MonitorProgram, ACommandThatCannotRunIsOneLineAndLeavesNothing) {
  EXPECT_THAT(fail({"monitor", "--", "no-such-program-here", "x"}, 1), HasSubstr("cannot run no-such-program-here"));
  EXPECT_THAT(fail({"monitor", "--", folder.path()}, 1), HasSubstr("cannot run " + folder.path()));
  EXPECT_THAT(fail({"monitor", "sleep", "1"}, 2), HasSubstr("give the command to run after --"));
  EXPECT_THAT(fail({"monitor", "--every", "fast", "--", "true"}, 2), HasSubstr("--every: 'fast'"));
  EXPECT_THAT(fail({"monitor", "--every", "0", "--", "true"}, 2), HasSubstr("--every: '0'"));
  EXPECT_EQ(run({"monitor"}).code, 2);
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST_F(MonitorProgram, AFileThatCannotBeWrittenIsAWarningAndTheProgramRuns) {
  const Ended ended = run({"monitor", "--csv", "/proc/no/such/x.csv", "--", "sh", "-c", "exit 3"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, AllOf(StartsWith("lockstep: warning: "), HasSubstr("/proc/no/such/x.csv"), HasSubstr("CPU"),
                               Not(HasSubstr("samples in"))));
}

TEST_F(MonitorProgram, SignalsArePassedOnAndTheirEndIsTheEnd) {
  Process handled(program_path(),
                  {"monitor", "--", "sh", "-c", "trap 'exit 42' TERM; echo up; while :; do sleep 0.01; done"},
                  options());
  ASSERT_TRUE(handled.wait_for("up"));
  handled.signal(SIGTERM);
  EXPECT_EQ(handled.finish().code, 42);
  Process plain(program_path(), {"monitor", "--", "sh", "-c", "echo up; exec sleep 1000"}, options());
  ASSERT_TRUE(plain.wait_for("up"));
  plain.signal(SIGINT);
  const Ended ended = plain.finish();
  EXPECT_EQ(ended.code, 128 + SIGINT);
  EXPECT_THAT(ended.err, HasSubstr("CPU"));
}

}  // namespace
}  // namespace lockstep::testing
