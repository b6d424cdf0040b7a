// One child process: its lines and its end, and that it never outlives its launcher.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "base/cores.h"
#include "base/temp_dir.h"
#include "cluster/processes.h"
#include "lockstep/error.h"
#include "process/child_process.h"

namespace lockstep::testing {
namespace {

using process::Child;
using process::Ending;
using process::LineReader;
using process::Stream;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  LineReader reader;
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  for (const std::string& piece : pieces) reader.feed(piece, keep);
  reader.finish(keep);
  return lines;
}

TEST(LineReader, JoinsPiecesAndSplitsAtEnds) {
  EXPECT_THAT(lines_of({"one\ntw", "o\r\n\nthr", "ee"}), ElementsAre("one", "two", "", "three"));
}

TEST(LineReader, CutsALineThatIsTooLongAndGoesOnAfterIt) {
  const std::string piece(LineReader::kLongest / 2 + 1, 'x');
  const std::vector<std::string> lines = lines_of({piece, piece, piece, "\nnext\n"});
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].size(), LineReader::kLongest + 3);
  EXPECT_TRUE(lines[0].ends_with("x..."));
  EXPECT_EQ(lines[1], "next");
}

TEST(Printable, LeavesTextAndReplacesWhatATerminalWouldObey) {
  EXPECT_EQ(process::printable("größe ✓ 😀"), "größe ✓ 😀");
  EXPECT_EQ(process::printable("a\tb\x1b[2J\x7f\xc2\x9b"), "a b?[2J??");
  for (const char* bad : {"\xff", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"}) {
    EXPECT_THAT(process::printable(bad), AllOf(HasSubstr("\xEF\xBF\xBD"), Each(::testing::Ne('\xff')))) << bad;
  }
}

/// Runs the helper to its end, as a launcher would, and keeps its output.
struct Whole {
  explicit Whole(const process::Command& command) : child(command) {
    while (!(ending = child.reap())) {
      pollfd fd{child.end_fd(), POLLIN, 0};
      poll(&fd, 1, 20);
      child.read(Stream::out, keep(out));
      child.read(Stream::err, keep(err));
    }
    child.read_rest(Stream::out, keep(out));
    child.read_rest(Stream::err, keep(err));
  }
  static LineReader::Sink keep(std::vector<std::string>& lines) {
    return [&lines](const std::string& line) { lines.push_back(line); };
  }

  Child child;
  std::optional<Ending> ending;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

TEST(Child, GivesBothStreamsAndTheExitCode) {
  const Whole run(helper({"out=one", "err=oops", "raw=two", "exit=3"}));
  EXPECT_THAT(run.out, ElementsAre("one", "two"));
  EXPECT_THAT(run.err, ElementsAre("oops"));
  EXPECT_EQ(run.ending->text(), "exit code 3");
  EXPECT_EQ(run.ending->code(), 3);
  EXPECT_TRUE(Whole(helper({})).ending->ok());
}

TEST(Child, SaysWhichSignalKilledIt) {
  EXPECT_EQ(Whole(helper({"kill=9"})).ending->text(), "killed by signal 9 (Killed)");
  EXPECT_EQ(Whole(helper({"kill=10"})).ending->code(), 138);
}

TEST(Child, SurvivesMuchOutputGarbageAndAClosedStream) {
  EXPECT_THAT(Whole(helper({"long=3000000"})).out, ElementsAre(SizeIs(LineReader::kLongest + 3)));
  EXPECT_THAT(Whole(helper({"garbage"})).out, ElementsAre("?[2J?\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD("));
  EXPECT_TRUE(Whole(helper({"out=last", "close", "exit=0"})).ending->ok());
}

TEST(Child, HasTheEnvironmentItWasGivenAndNoInput) {
  process::Command command;
  command.argv = {"sh", "-c", "cat; echo \"$LOCKSTEP_A-${LOCKSTEP_B-unset}\""};
  setenv("LOCKSTEP_B", "inherited", 1);  // NOLINT(concurrency-mt-unsafe)
  command.environment = {{"LOCKSTEP_A", "given"}, {"LOCKSTEP_B", ""}};
  EXPECT_THAT(Whole(command).out, ElementsAre("given-unset"));
}

TEST(Child, HasTheCoresItWasGiven) {
  const std::vector<int> all = base::share_of_cores(0, 1);
  process::Command command;
  command.argv = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status | tr -d '[:space:]'"};
  command.cores = {all.back()};
  EXPECT_THAT(Whole(command).out, ElementsAre(fmt::format("Cpus_allowed_list:{}", all.back())));
  EXPECT_EQ(base::share_of_cores(0, 1), all) << "whoever started it keeps its own";
}

TEST(Child, AProgramThatIsNotThereIsAnError) {
  process::Command command;
  command.argv = {"/nowhere/lockstep"};
  EXPECT_THAT(message_of<IoError>([&] { const Child child(command); }),
              AllOf(HasSubstr("/nowhere/lockstep"), HasSubstr("No such file")));
}

TEST(Child, IsSeenStoppedAndContinued) {
  Child child(helper({"wait"}));
  EXPECT_FALSE(child.stopped());
  child.signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return child.stopped(); }));
  child.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return !child.stopped(); }));
}

TEST(Child, TakesItsOwnChildrenWithIt) {
  const Whole run(helper({"fork", "exit=0"}));
  ASSERT_THAT(run.out, SizeIs(1));
  EXPECT_TRUE(eventually([&] { return !alive(number_in(run.out[0])); }));
}

TEST(Child, IsKilledWithTheObject) {
  pid_t pid = 0;
  {
    const Child child(helper({"ignore=15", "ignore=2", "wait"}));
    pid = child.pid();
    EXPECT_TRUE(alive(pid));
  }
  EXPECT_FALSE(alive(pid));
}

TEST(Child, AHeldInputIsReadAndEndsWithTheChildObject) {
  process::Command command;
  command.argv = {"cat"};
  command.hold_stdin = true;
  Child child(command);
  child.write("word\n");
  std::vector<std::string> out;
  EXPECT_TRUE(eventually([&] {
    child.read(Stream::out, Whole::keep(out));
    return !out.empty();
  }));
  EXPECT_THAT(out, ElementsAre("word"));
  EXPECT_FALSE(child.reap().has_value());
  child.close_input();
  EXPECT_TRUE(eventually([&] { return child.reap().has_value(); }));
}

}  // namespace
}  // namespace lockstep::testing
