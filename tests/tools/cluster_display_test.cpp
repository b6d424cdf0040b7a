// The display of a cluster, on a terminal and in a file, for any output of the roles.
#include "display/cluster_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "display/role_report.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using cluster::Role;
using cluster::Task;
using launch::RoleEvent;
using Kind = RoleEvent::Kind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const Task kServer{Role::ps, 0};
const Task kFirst{Role::worker, 0};
const Task kSecond{Role::worker, 1};
const Task kEvaluator{Role::evaluator, 0};

/// Returns the lines that a terminal shows after a text; knows the control codes of the display.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines{""};
  size_t row = 0;
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\n') {
      column = 0;
      if (++row == lines.size()) lines.emplace_back();
    } else if (text[i] == '\x1b') {
      const size_t end = text.find_first_of("AKJm", i);
      const std::string number = text.substr(i + 2, end - i - 2);
      if (text[end] == 'A') row -= std::stoul(number);
      if (text[end] != 'A' && text[end] != 'm') lines[row].resize(std::min(column, lines[row].size()));
      if (text[end] == 'J') lines.resize(row + 1);
      i = end;
    } else {
      lines[row].resize(std::max(lines[row].size(), column + 1), ' ');
      lines[row][column++] = text[i];
    }
  }
  return lines;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

class Display : public ::testing::Test {
 protected:
  /// Returns the output for these events.
  static std::string shown(const std::vector<RoleEvent>& events, bool interactive, bool finish = false,
                           const std::vector<Task>& tasks = {kServer, kFirst, kSecond}) {
    ::testing::internal::CaptureStdout();
    terminal::Terminal terminal;
    terminal.interactive = interactive;
    display::ClusterDisplay display(terminal, tasks, "test", false);
    for (const RoleEvent& event : events) display.on_event(event);
    if (finish) display.finish();
    std::fflush(stdout);
    return ::testing::internal::GetCapturedStdout();
  }
  static RoleEvent says(const Task& task, const std::string& line) { return {Kind::out_line, task, line, 1, 0}; }
};

const std::vector<RoleEvent>& typical() {
  static const std::vector<RoleEvent> events{
      {Kind::started, kFirst, "", 11, 0},
      {Kind::out_line, kFirst,
       R"({"event":"status","role":"worker:0","step":1200,"steps":2400,"epoch":2,"epochs":4,"examples_per_s":3000,)"
       R"("loss":0.5,"staleness":1.25,"wait_share":0.23,"state":"training"})"},
      {Kind::out_line, kSecond, R"({"event":"status","step":1190,"examples_per_s":2000,"loss":0.7,"state":"waiting"})"},
      {Kind::died, kSecond, "killed by signal 9 (Killed); restarting it (1 of 10)", -1, 1},
      {Kind::restarted, kSecond, "", 12, 1},
      {Kind::out_line, kFirst, R"({"event":"eval","step":1200,"epoch":2,"loss":0.25,"accuracy":0.9375,"best":true})"},
      {Kind::out_line, kServer, R"({"event":"log","level":"info","text":"worker:1 is back"})"}};
  return events;
}

TEST_F(Display, ATerminalShowsWhatWasSaidAndOneBlockBelow) {
  const std::vector<std::string> lines = screen(shown(typical(), true));
  ASSERT_EQ(lines.size(), 9U) << ::testing::PrintToString(lines);
  EXPECT_THAT(lines[0], StartsWith("worker:1 died: killed by signal 9"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("test loss"), HasSubstr("test acc")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("2/4"), HasSubstr("1,200"), HasSubstr("93.75 %")));
  EXPECT_EQ(lines[3], "ps:0: worker:1 is back");
  EXPECT_THAT(lines[4], AllOf(HasSubstr("50 %"), HasSubstr("step 1,200/2,400"), HasSubstr("examples/s")));
  EXPECT_THAT(lines[5], AllOf(StartsWith("role"), HasSubstr("staleness")));
  EXPECT_THAT(lines[6], StartsWith("ps:0"));
  EXPECT_THAT(lines[7],
              AllOf(StartsWith("worker:0  training"), HasSubstr("3,000"), HasSubstr("1.2"), HasSubstr("23 %")));
  EXPECT_THAT(lines[8], AllOf(StartsWith("worker:1  starting"), ::testing::EndsWith("1")));
}

TEST_F(Display, WhatOneProcessSaysOfAllRolesGoesToTheirLines) {
  const std::string status = R"({"event":"status","role":"worker:1","step":7,"state":"training"})";
  const std::vector<RoleEvent> events{{Kind::out_line, kFirst, status, 1, 0, "mpirun"},
                                      {Kind::out_line, kFirst, "something else", 1, 0, "mpirun"},
                                      {Kind::err_line, kFirst, "lockstep: no disk", 1, 0, "mpirun"}};
  std::vector<std::string> lines = screen(shown(events, true));
  ASSERT_EQ(lines.size(), 7U) << ::testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "mpirun: something else");
  EXPECT_EQ(lines[1], "mpirun: lockstep: no disk");
  EXPECT_THAT(lines[5], StartsWith("worker:0  starting"));
  EXPECT_THAT(lines[6], AllOf(StartsWith("worker:1  training"), HasSubstr("7")));
  const std::string died = shown({{Kind::died, kFirst, "exit code 1", -1, 1, "mpirun"}}, false);
  EXPECT_EQ(died, "mpirun died: exit code 1\n");
}

TEST_F(Display, TheBlockGoesAtTheEnd) {
  const std::vector<std::string> lines = screen(shown(typical(), true, true));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[4], "");
}

TEST_F(Display, OnlyTheChiefsAndTheEvaluatorsEvaluationsAreLines) {
  const std::string eval = R"({"event":"eval","step":1,"epoch":1,"loss":0.25,"accuracy":0.5})";
  EXPECT_EQ(shown({says(kSecond, eval)}, false), "");
  EXPECT_THAT(shown({says(kFirst, eval)}, false), HasSubstr("50.00 %"));
}

TEST_F(Display, AnEvaluationShowsTheTrainingItsRoleReportsNotTheLatestStatuses) {
  const std::vector<std::string> lines =
      screen(shown({says(kFirst, R"({"event":"status","step":9,"epochs":2,"examples":128,"loss":0.1,"accuracy":0.25})"),
                    says(kSecond, R"({"event":"status","step":8,"examples":128,"loss":0.3,"accuracy":0.25})"),
                    says(kFirst, R"({"event":"eval","step":9,"epoch":1,"loss":0.25,"accuracy":0.5,"train_loss":0.625,)"
                                 R"("train_accuracy":0.75,"seconds":4})")},
                   false));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(words(lines[0]),
              ElementsAre("epoch", "step", "train", "loss", "train", "acc", "test", "loss", "test", "acc", "time"));
  EXPECT_THAT(words(lines[1]), ElementsAre("1/2", "9", "0.6250", "75.00", "%", "0.2500", "50.00", "%", "4.0", "s"));
}

TEST_F(Display, AnEvaluatorsLineShowsTheMeanOverTheExamplesOfAllWorkers) {
  const std::string status = R"({"event":"status","step":5,)";
  const std::vector<std::string> lines =
      screen(shown({says(kFirst, status + R"("seconds":36000,"examples":300,"loss":0.1,"accuracy":0.5})"),
                    says(kSecond, status + R"("examples":100,"loss":0.5,"accuracy":0.9})"),
                    says(kEvaluator, R"({"event":"eval","step":4,"loss":0.25,"accuracy":0.5,"seconds":1})"),
                    says(kSecond, status + R"("examples":100,"loss":0.3,"accuracy":0.8})"),
                    says(kEvaluator, R"({"event":"eval","step":5,"loss":0.25,"accuracy":0.5,"seconds":2})")},
                   false, false, {kFirst, kSecond, kEvaluator}));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], AllOf(HasSubstr("0.2000"), HasSubstr("60.00 %"), HasSubstr("10:0"))) << "the chief's time";
  EXPECT_THAT(lines[2], AllOf(HasSubstr("0.3000"), HasSubstr("80.00 %"))) << "since the line before";
}

TEST_F(Display, AResumedRunSaysOnceFromWhichStepItGoesOn) {
  const std::string resumed = R"({"event":"resumed","step":1158})";
  EXPECT_EQ(shown({says(kSecond, resumed), says(kFirst, resumed), says(kFirst, resumed)}, false),
            "resuming after step 1,158\n");
}

TEST_F(Display, WithoutAccuracyThereAreNoColumnsForIt) {
  const std::string text = shown({says(kFirst, R"({"event":"eval","step":9,"loss":0.25,"train_loss":0.5})")}, false);
  EXPECT_THAT(text, AllOf(HasSubstr("0.5000"), Not(HasSubstr("acc")), Not(HasSubstr("%"))));
}

TEST_F(Display, AFileGetsPlainLines) {
  const std::string text = shown(typical(), false, true);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, AllOf(HasSubstr("worker:1 died"), HasSubstr("93.75 %"), HasSubstr("ps:0: worker:1 is back")));
}

TEST_F(Display, OddLinesAreShownAsTheyAre) {
  const std::vector<std::string> odd{"not json",
                                     "[1,2]",
                                     "{}",
                                     R"({"event":7})",
                                     R"({"event":"status","step":"x","loss":1e999,"epoch":null})",
                                     R"({"event":"status","step":-5,"steps":-1,"wait_share":1e300})",
                                     R"({"event":"unheard of"})",
                                     std::string(70000, '[')};
  std::vector<RoleEvent> events;
  for (const std::string& line : odd) events.push_back(says(kFirst, line));
  for (const bool interactive : {true, false}) {
    const std::string text = shown(events, interactive, true);
    EXPECT_THAT(text, AllOf(HasSubstr("worker:0: not json"), HasSubstr("worker:0: [1,2]")));
  }
}

TEST_F(Display, ATotalThatIsPassedIsNotShown) {
  const std::string status =
      R"({"event":"status","step":5499,"steps":2820,"epoch":4,"epochs":6,"loss":0.5,"state":"training"})";
  const std::string eval = R"({"event":"eval","step":5499,"epoch":4,"loss":0.25,"accuracy":0.5})";
  const std::vector<std::string> lines = screen(shown({says(kFirst, status), says(kFirst, eval)}, true));
  ASSERT_GT(lines.size(), 2U);
  EXPECT_THAT(lines[2], AllOf(HasSubstr("50 %"), HasSubstr("step 5,499  "), Not(HasSubstr("2,820"))));
}

TEST_F(Display, TheTotalIsThatOfWhoHasMadeTheLatestStep) {
  const auto status = [](int step, int steps) {
    return R"({"event":"status","epoch":1,"epochs":2,"loss":0.5,"state":"training","step":)" + std::to_string(step) +
           R"(,"steps":)" + std::to_string(steps) + "}";
  };
  const RoleEvent drawn = says(kServer, R"({"event":"log","text":"a worker is lost"})");
  // The first worker was lost when it counted on two members; the second goes on alone.
  const std::vector<std::string> lost =
      screen(shown({says(kFirst, status(40, 100)), says(kSecond, status(41, 160)), drawn}, true));
  EXPECT_THAT(lost.at(1), AllOf(HasSubstr("26 %"), HasSubstr("step 41/160")));
  // A member that joins makes the total smaller.
  const std::vector<std::string> joined =
      screen(shown({says(kFirst, status(40, 160)), says(kSecond, status(50, 90)), drawn}, true));
  EXPECT_THAT(joined.at(1), AllOf(HasSubstr("56 %"), HasSubstr("step 50/90")));
  // A server that is ahead of the workers tells no total.
  const RoleEvent server = says(kServer, R"({"event":"status","state":"serving","step":60})");
  const std::vector<std::string> ahead = screen(shown({server, says(kFirst, status(40, 100)), drawn}, true));
  EXPECT_THAT(ahead.at(1), AllOf(HasSubstr("60 %"), HasSubstr("step 60/100")));
}

TEST_F(Display, ATextCannotCommandTheTerminal) {
  const std::string text = shown({says(kServer, R"({"event":"log","text":"a\u001b[2Jb\nc"})")}, false);
  EXPECT_EQ(text, "ps:0: a?[2Jb?c\n");
}

TEST(Report, TakesWhatIsThereAndOfTheRightKind) {
  const auto report = display::parse_report(R"({"event":"eval","accuracy":"high","loss":0.5,"best":1})");
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->loss, 0.5);
  EXPECT_NE(report->accuracy, report->accuracy);
  EXPECT_FALSE(report->best);
}

TEST(Report, WorkersOfASummaryThatHasNoneOrOddOnes) {
  for (const char* text : {"", "x", "[]", "{}", R"({"workers":3})", R"({"workers":[1,"a",null]})"}) {
    EXPECT_THAT(display::parse_workers(text), IsEmpty()) << text;
  }
  const auto workers = display::parse_workers(R"({"workers":[{"role":"worker:1","iterations":12}]})");
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].role, "worker:1");
  EXPECT_EQ(workers[0].iterations, 12);
}

}  // namespace
}  // namespace lockstep::tools
