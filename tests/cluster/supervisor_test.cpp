// The supervisor with real processes that end well, die, stop, linger and ignore signals.
#include "launch/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <fstream>

#include "base/temp_dir.h"
#include "cluster/processes.h"
#include "process/caught_signals.h"

namespace lockstep::testing {
namespace {

using cluster::Role;
using cluster::Task;
using launch::JobOutcome;
using launch::RoleEvent;
using launch::RoleProcess;
using launch::SupervisorOptions;
using Kind = RoleEvent::Kind;
using Time = SupervisorOptions::Time;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RoleProcess role(Role kind, int index, const Words& words) { return {{kind, index}, helper(words)}; }
RoleProcess worker(int index, const Words& words) { return role(Role::worker, index, words); }
RoleProcess ps(int index, const Words& words) { return role(Role::ps, index, words); }

/// Short pauses. Deadlines that must not pass are longer than a busy machine needs.
SupervisorOptions quick() {
  SupervisorOptions options;
  options.first_backoff = Time(1);
  options.first_reconnect = Time(2);
  options.tick = Time(20);
  options.quick_death = options.finish = options.finish_member = options.finish_last = Time(100'000);
  options.interrupt = options.terminate = options.error_kept = Time(100'000);
  return options;
}

class Supervisor : public ::testing::Test {
 protected:
  JobOutcome run(std::vector<RoleProcess> roles, const SupervisorOptions& options = quick()) {
    launch::Supervisor supervisor(std::move(roles), options, [this](const RoleEvent& event) {
      if (event.kind == Kind::tick) return;
      if (event.kind == Kind::started || event.kind == Kind::restarted) pids.push_back(event.pid);
      events.push_back(event);
      if (on_event) on_event(event);
    });
    const JobOutcome outcome = supervisor.run();
    for (const pid_t pid : pids) EXPECT_FALSE(alive(pid)) << "left behind";
    return outcome;
  }
  [[nodiscard]] std::vector<std::string> texts(Kind kind) const {
    std::vector<std::string> result;
    for (const RoleEvent& event : events) {
      if (event.kind == kind) result.push_back(event.task.str() + " " + event.text);
    }
    return result;
  }
  [[nodiscard]] long count(Kind kind, const Task& task) const {
    return std::count_if(events.begin(), events.end(),
                         [&](const RoleEvent& event) { return event.kind == kind && event.task == task; });
  }

  TempDir folder;
  std::vector<RoleEvent> events;
  std::vector<pid_t> pids;
  std::function<void(const RoleEvent&)> on_event;
};

TEST_F(Supervisor, EndsWhenAllHaveEndedWell) {
  const std::string file = folder / "trained";
  const JobOutcome outcome =
      run({ps(0, {"out=serving", "until=" + file}), worker(0, {"out=a", "first=" + file}), worker(1, {"out=b"})});
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::out_line), ::testing::UnorderedElementsAre("ps:0 serving", "worker:0 a", "worker:1 b"));
  EXPECT_THAT(texts(Kind::died), IsEmpty());
  EXPECT_EQ(texts(Kind::ended).size(), 3U);
}

TEST_F(Supervisor, StartsAgainWhatDiesAndSaysOfWhat) {
  const JobOutcome outcome = run({worker(1, {"first=" + (folder / "f"), "out=once", "kill=9", "again", "out=twice"})});
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::died), ElementsAre("worker:1 killed by signal 9 (Killed); restarting it (1 of 10)"));
  EXPECT_THAT(texts(Kind::out_line), ElementsAre("worker:1 once", "worker:1 twice"));
  EXPECT_EQ(count(Kind::restarted, {Role::worker, 1}), 1);
}

TEST_F(Supervisor, WaitsLongerBeforeEachRestartAfterQuickDeaths) {
  SupervisorOptions options = quick();
  options.restarts = 3;
  (void)run({worker(0, {"exit=1"})}, options);
  EXPECT_THAT(texts(Kind::died),
              ElementsAre(HasSubstr("restarting it (1 of 3)"), HasSubstr("restarting it in 0.001 s (2"),
                          HasSubstr("restarting it in 0.002 s (3"), "worker:0 exit code 1"));
}

TEST_F(Supervisor, OutOfRestartsEndsTheJobWithALineThatNamesTheRole) {
  SupervisorOptions options = quick();
  options.restarts = 1;
  const JobOutcome outcome = run({ps(0, {"wait"}), worker(2, {"err=role_helper: no data", "exit=1"})}, options);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.error(), "worker:2 died (exit code 1: role_helper: no data) and has no restarts left of 1");
  EXPECT_THAT(texts(Kind::err_line), IsEmpty()) << "it is in the line about the death";
}

TEST_F(Supervisor, ARolesLastWordIsItsReasonAlsoWhereItWasToldBeforeItsEnd) {
  const std::string file = folder / "told";
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::err_line) std::ofstream(file) << "\n";
  };
  SupervisorOptions options = quick();
  options.restarts = 0;
  options.error_kept = Time(1);
  const JobOutcome outcome = run({worker(0, {"err=role_helper: no data", "until=" + file, "exit=1"})}, options);
  EXPECT_EQ(outcome.error(), "worker:0 died (exit code 1: role_helper: no data) and has no restarts left of 0");
}

TEST_F(Supervisor, ARoleThatFailsInTheSameWayEachTimeIsGivenUp) {
  const JobOutcome outcome = run({ps(0, {"wait"}), worker(0, {"err=role_helper: no data", "exit=1"})});
  EXPECT_EQ(outcome.error(), "worker:0 died (exit code 1: role_helper: no data) and fails in the same way each time");
  EXPECT_EQ(count(Kind::died, {Role::worker, 0}), 3);
}

/// A worker that reports a failure and ends with a different last line each time.
RoleProcess reporting(int index, const std::string& fields) {
  RoleProcess process = worker(index, {});
  process.command.argv = {
      "sh", "-c", R"(echo '{"event":"failure",)" + fields + R"(}'; echo "sh: cannot write x.tmp-$$" >&2; exit 1)"};
  return process;
}

TEST_F(Supervisor, TheSameFaultOfAFolderIsGivenUpWhateverTheWords) {
  const JobOutcome outcome =
      run({ps(0, {"wait"}), reporting(0, R"("kind":"io","errno":28,"path":"run/checkpoints/step-1.ckpt","saved":7)")});
  EXPECT_THAT(outcome.error(), AllOf(HasSubstr("worker:0 died (exit code 1: sh: cannot write x.tmp-"),
                                     HasSubstr("would fail again: 3 such failures without a newer checkpoint")));
  EXPECT_EQ(count(Kind::died, {Role::worker, 0}), 3);
}

TEST_F(Supervisor, AJobFailsWithTheFieldsThatItsRoleReported) {
  SupervisorOptions options = quick();
  options.restarts = 0;
  const JobOutcome outcome = run(
      {ps(0, {"wait"}), reporting(3, R"("role":"worker:3","kind":"io","errno":28,"path":"r/x","text":"disk full")")},
      options);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, launch::RoleFailure::Kind::io);
  EXPECT_EQ(outcome.failure->role, "worker:3");
  EXPECT_EQ(outcome.failure->path, "r/x");
  EXPECT_EQ(outcome.error(), "worker:3 died (exit code 1: disk full) and has no restarts left of 0");
}

TEST_F(Supervisor, RolesThatMeetTheSameFaultInTurnEndTheJob) {
  SupervisorOptions options = quick();
  options.restarts = 100'000;
  options.enough_members = 1;
  const JobOutcome outcome = run({reporting(0, R"("kind":"io","errno":28,"path":"run/checkpoints/step-1.ckpt")"),
                                  reporting(1, R"("kind":"io","errno":28,"path":"run/checkpoints/step-2.ckpt")")},
                                 options);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error(), HasSubstr("would fail again"));
  EXPECT_LE(texts(Kind::died).size(), 6U);
}

TEST_F(Supervisor, ANewerCheckpointMakesTheSameFaultCountAnew) {
  RoleProcess advancing = reporting(0, "");
  const std::string counter = folder / "step";
  advancing.command.argv[2] = "echo x >> " + counter +
                              R"(; echo "{\"event\":\"failure\",\"kind\":\"io\",\"errno\":28,)" +
                              R"(\"path\":\"r/c/x\",\"saved\":$(wc -l < )" + counter + R"()}"; exit 1)";
  SupervisorOptions options = quick();
  options.restarts = 6;
  const JobOutcome outcome = run({ps(0, {"wait"}), advancing}, options);
  EXPECT_EQ(outcome.error(), "worker:0 died (exit code 1) and has no restarts left of 6");
}

TEST_F(Supervisor, AFaultOfOtherKindOrPlaceCountsAnew) {
  const std::string file = folder / "f";
  RoleProcess changing =
      worker(0, {"first=" + file, R"(out={"event":"failure","kind":"io","errno":13,"path":"a/x"})", "exit=1", "again",
                 R"(out={"event":"failure","kind":"io","errno":28,"path":"a/x"})", "exit=1"});
  (void)run({ps(0, {"wait"}), changing});
  EXPECT_EQ(count(Kind::died, {Role::worker, 0}), 4);
}

TEST_F(Supervisor, ALimitEndsTheJobAtOnceAlsoWhereOthersAreEnough) {
  SupervisorOptions options = quick();
  options.enough_members = 1;
  const JobOutcome outcome = run({worker(1, {"wait"}), reporting(0, R"("kind":"limit","errno":24)")}, options);
  EXPECT_THAT(outcome.error(), HasSubstr("would fail again: a restart raises no limit"));
  EXPECT_EQ(count(Kind::died, {Role::worker, 0}), 1);
}

TEST_F(Supervisor, AReportThatMakesNoSenseHarmsNobody) {
  SupervisorOptions options = quick();
  options.restarts = 1;
  for (const char* fields : {R"("kind":7,"errno":"x","path":[],"saved":-1)", R"("kind":)", R"("errno":1e300)"}) {
    const JobOutcome outcome = run({reporting(0, fields)}, options);
    EXPECT_THAT(outcome.error(), HasSubstr("has no restarts left of 1")) << fields;
  }
}

TEST_F(Supervisor, AnswersTheQuestionsOfItsRolesAndShowsThemToNobody) {
  SupervisorOptions options = quick();
  options.answer = [](const std::string& line) -> std::optional<std::string> {
    if (line != "question") return std::nullopt;
    return "answer";
  };
  RoleProcess near = worker(0, {"out=question", "echo"});
  near.command.hold_stdin = true;
  EXPECT_EQ(run({near}, options).code, 0);
  EXPECT_THAT(texts(Kind::out_line), ElementsAre("worker:0 answer"));
  events.clear();
  near.remote = true;
  EXPECT_EQ(run({near}, options).code, 0);
  EXPECT_THAT(texts(Kind::out_line), ElementsAre("worker:0 tell answer"));
}

TEST_F(Supervisor, AHostThatIsNotReachedThreeTimesEndsTheJob) {
  RoleProcess far = worker(0, {"err=role_helper: no route", "exit=255"});
  far.remote = true;
  far.host = "north";
  const JobOutcome outcome = run({ps(0, {"wait"}), far});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.error(), "worker:0: host north cannot be reached: role_helper: no route");
  EXPECT_THAT(texts(Kind::died),
              ElementsAre(HasSubstr("restarting it in 0.002 s (1"), HasSubstr("restarting it in 0.008 s (2"),
                          "worker:0 host north cannot be reached: role_helper: no route"));
}

TEST_F(Supervisor, AHostThatIsNeverReachedEndsTheJobAlsoWhereItsRoleCouldBeDoneWithout) {
  SupervisorOptions options = quick();
  options.enough_members = 1;
  const std::string file = folder / "goes-on";
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::message) std::ofstream(file) << event.text;
  };
  for (const Task& task : {Task{Role::worker, 1}, Task{Role::evaluator, 0}}) {
    RoleProcess far = role(task.role, task.index, {"err=role_helper: no route", "exit=255"});
    far.remote = true;
    far.host = "north";
    const JobOutcome outcome = run({worker(0, {"until=" + file}), far}, options);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.error(), task.str() + ": host north cannot be reached: role_helper: no route");
  }
}

TEST_F(Supervisor, AConnectionThatIsLostIsNotAHostThatCannotBeReached) {
  RoleProcess far = worker(0, {"out=here", "err=role_helper: broken pipe", "exit=255"});
  far.remote = true;
  SupervisorOptions options = quick();
  options.restarts = 4;
  const JobOutcome outcome = run({ps(0, {"wait"}), far}, options);
  EXPECT_EQ(outcome.error(), "worker:0 died (exit code 255: role_helper: broken pipe) and has no restarts left of 4");
}

TEST_F(Supervisor, WrongUsageEndsAllAtOnceWithItsLine) {
  const JobOutcome outcome = run({ps(0, {"wait"}), worker(0, {"err=role_helper: --lr: no number", "exit=2"})});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.error(), "worker:0: role_helper: --lr: no number");
  EXPECT_EQ(count(Kind::restarted, {Role::worker, 0}), 0);
}

TEST_F(Supervisor, AProgramThatIsNotThereEndsTheJob) {
  RoleProcess missing = worker(1, {});
  missing.command.argv = {"/nowhere/lockstep"};
  const JobOutcome outcome = run({ps(0, {"wait"}), missing, worker(2, {"wait"})});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error(), AllOf(HasSubstr("worker:1"), HasSubstr("/nowhere/lockstep")));
}

TEST_F(Supervisor, AStoppedRoleIsKilledAndStartedAgain) {
  SupervisorOptions options = quick();
  options.stopped = Time(100);
  const JobOutcome outcome = run({worker(0, {"first=" + (folder / "f"), "kill=19", "wait", "again"})}, options);
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::message), ElementsAre("worker:0 is stopped and was not continued within 0.1 s; killed"));
  EXPECT_EQ(count(Kind::restarted, {Role::worker, 0}), 1);
}

TEST_F(Supervisor, AStoppedRoleThatIsContinuedLives) {
  const std::string file = folder / "go";
  SupervisorOptions options = quick();
  options.stopped = Time(60'000);
  on_event = [&](const RoleEvent& event) {
    if (event.kind != Kind::out_line) return;
    kill(number_in(event.text), SIGSTOP);
    EXPECT_TRUE(eventually(
        [&] { return get_file("/proc/" + event.text.substr(4) + "/stat").find(") T") != std::string::npos; }));
    kill(number_in(event.text), SIGCONT);
    std::ofstream(file) << "\n";
  };
  EXPECT_EQ(run({worker(0, {"pid", "until=" + file})}, options).code, 0);
  EXPECT_THAT(texts(Kind::died), IsEmpty());
}

TEST_F(Supervisor, AServerThatDoesNotEndIsAskedAndThenKilled) {
  SupervisorOptions options = quick();
  options.finish = Time(50);
  options.terminate = Time(50);
  const JobOutcome outcome =
      run({ps(0, {"wait"}), ps(1, {"ignore=15", "out=", "wait"}), worker(0, {"exit=0"})}, options);
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::message),
              ::testing::IsSupersetOf({std::string("ps:0 still runs after the end of training; asking it to end"),
                                       std::string("ps:1 still runs after the end of training; asking it to end")}));
}

TEST_F(Supervisor, AServerThatDiesAfterTheTrainingIsNotStartedAgain) {
  const std::string file = folder / "f";
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::ended) std::ofstream(file) << "\n";
  };
  SupervisorOptions options = quick();
  const JobOutcome outcome = run({ps(0, {"until=" + file, "kill=10"}), worker(0, {})}, options);
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_EQ(pids.size(), 2U);
}

TEST_F(Supervisor, AWorkerThatDoesNotEndWithTheTrainingIsAskedTo) {
  SupervisorOptions options = quick();
  options.finish_member = Time(50);
  const JobOutcome outcome = run({worker(0, {"exit=0"}), worker(1, {"on=15:1", "wait"})}, options);
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::message), ElementsAre("worker:1 still runs after the end of training; asking it to end"));
  EXPECT_THAT(texts(Kind::died), IsEmpty()) << "it did what it was asked to";
}

TEST_F(Supervisor, ServersThatAreLeftAloneNeedNotWait) {
  SupervisorOptions options = quick();
  options.finish = Time(1'000'000);
  options.finish_last = Time(50);
  EXPECT_EQ(run({ps(0, {"wait"}), worker(0, {}), worker(1, {})}, options).code, 0);
}

TEST_F(Supervisor, AServerEndsWellOnlyAfterTheTraining) {
  SupervisorOptions options = quick();
  options.finish_member = Time(50);
  const JobOutcome outcome = run({ps(0, {}), worker(0, {"wait"})}, options);
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_THAT(texts(Kind::died), IsEmpty());
}

TEST_F(Supervisor, TheEvaluatorsDeathNeverEndsTheJob) {
  const std::string file = folder / "f";
  SupervisorOptions options = quick();
  options.restarts = 0;
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::message) std::ofstream(file) << "\n";
  };
  EXPECT_EQ(run({role(Role::evaluator, 0, {"exit=1"}), worker(0, {"until=" + file})}, options).code, 0);
  EXPECT_THAT(texts(Kind::message), ElementsAre(HasSubstr("goes on without it")));
}

TEST_F(Supervisor, WhereSomeAreEnoughOneThatCannotBeKeptAliveIsLeftOut) {
  SupervisorOptions options = quick();
  options.restarts = 2;
  options.enough_members = 1;
  const std::string file = folder / "f";
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::message) std::ofstream(file) << "\n";
  };
  const JobOutcome outcome = run({worker(0, {"kill=9"}), worker(1, {"until=" + file})}, options);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.error(), "");
  EXPECT_THAT(texts(Kind::message), ElementsAre("worker:0 has no restarts left of 2; training goes on without it"));
}

TEST_F(Supervisor, WhereSomeAreEnoughFewerEndTheJob) {
  SupervisorOptions options = quick();
  options.restarts = 1;
  options.enough_members = 2;
  const JobOutcome outcome =
      run({worker(0, {"wait"}), worker(1, {"kill=9"}), role(Role::evaluator, 0, {"wait"})}, options);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.error(), "worker:1 died (killed by signal 9 (Killed)) and has no restarts left of 1");
}

TEST_F(Supervisor, WhereSomeAreEnoughNobodyIsStartedAgainOnceOneHasEndedWell) {
  SupervisorOptions options = quick();
  options.enough_members = 1;
  const std::string file = folder / "f";
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::ended) std::ofstream(file) << "\n";
  };
  const JobOutcome outcome = run({worker(0, {"until=" + file, "kill=9"}), worker(1, {"exit=0"})}, options);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(texts(Kind::died), ElementsAre("worker:0 killed by signal 9 (Killed)"));
}

TEST_F(Supervisor, InterruptLetsAllEndGracefully) {
  const process::CaughtSignals signals;
  SupervisorOptions options = quick();
  options.signals = signals.fd();
  int ready = 0;
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::out_line && ++ready == 2) kill(getpid(), SIGTERM);
  };
  const JobOutcome outcome =
      run({ps(0, {"on=2:0", "out=up", "wait"}), worker(0, {"on=2:130", "out=up", "wait"})}, options);
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_THAT(texts(Kind::died), IsEmpty());
  EXPECT_THAT(texts(Kind::message), IsEmpty());
  EXPECT_EQ(texts(Kind::ended).size(), 2U);
}

TEST_F(Supervisor, WhatIgnoresTheInterruptIsKilledAfterItsDeadline) {
  const process::CaughtSignals signals;
  SupervisorOptions options = quick();
  options.signals = signals.fd();
  options.interrupt = Time(50);
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::out_line) kill(getpid(), SIGINT);
  };
  EXPECT_EQ(run({worker(0, {"ignore=2", "ignore=15", "out=up", "wait"})}, options).code, 130);
  EXPECT_THAT(texts(Kind::message), ElementsAre("worker:0 did not end within 0.05 s; killed"));
}

TEST_F(Supervisor, TheSecondInterruptKillsAtOnce) {
  const process::CaughtSignals signals;
  SupervisorOptions options = quick();
  options.signals = signals.fd();
  bool first = true;
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::out_line && std::exchange(first, false)) kill(getpid(), SIGINT);
  };
  // A handler that only prints: its line shows that the first interrupt arrived.
  RoleProcess stubborn = worker(0, {});
  stubborn.command.argv = {"sh", "-c", "trap 'echo no' INT; echo up; while :; do sleep 0.01; done"};
  const auto once_more = on_event;
  on_event = [&](const RoleEvent& event) {
    once_more(event);
    if (event.text == "no") kill(getpid(), SIGINT);
  };
  EXPECT_EQ(run({stubborn}, options).code, 130);
  EXPECT_THAT(texts(Kind::message), IsEmpty());
}

TEST_F(Supervisor, AClosedTerminalMaySayItTwice) {
  const process::CaughtSignals signals;
  SupervisorOptions options = quick();
  options.signals = signals.fd();
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::out_line) kill(getpid(), SIGHUP);
  };
  RoleProcess slow = worker(0, {});
  slow.command.argv = {"sh", "-c",
                       "trap 'echo saving; sleep 0.3; exit 130' INT; echo up; while :; do sleep 0.01; done"};
  EXPECT_EQ(run({slow}, options).code, 128 + SIGHUP);
  EXPECT_THAT(texts(Kind::ended), ElementsAre("worker:0 exit code 130"));
}

TEST_F(Supervisor, OddOutputHarmsNobody) {
  const JobOutcome outcome = run({worker(0, {"garbage", "long=1000000", "close", "err=still here", "exit=0"})});
  EXPECT_EQ(outcome.code, 0) << outcome.error();
  EXPECT_EQ(texts(Kind::out_line).size(), 2U);
  EXPECT_THAT(texts(Kind::err_line), ElementsAre("worker:0 still here"));
}

TEST_F(Supervisor, GrandchildrenOfADeadRoleAreGone) {
  pid_t grandchild = 0;
  on_event = [&](const RoleEvent& event) {
    if (event.kind == Kind::out_line) grandchild = number_in(event.text);
  };
  EXPECT_EQ(run({worker(0, {"first=" + (folder / "f"), "fork", "kill=9", "again"})}).code, 0);
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST(StoppedLauncher, StopsItsRolesWithItAndNoneIsKilledForIt) {
  const TempDir folder;
  process::Child launcher(helper({"supervise", "2", "pid", "until=" + (folder / "go")}));
  std::vector<pid_t> pids;
  const process::LineReader::Sink note = [&](const std::string& line) { pids.push_back(number_in(line)); };
  ASSERT_TRUE(eventually([&] {
    launcher.read(process::Stream::out, note);
    return pids.size() == 2;
  }));
  for (int round = 0; round < 2; ++round) {
    kill(launcher.pid(), SIGTSTP);
    EXPECT_TRUE(eventually([&] { return launcher.stopped(); }));
    for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_stopped(pid); }));
    std::this_thread::sleep_for(Time(150));  // longer than a single role may be stopped
    kill(launcher.pid(), SIGCONT);
    for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return !is_stopped(pid); }));
  }
  std::ofstream(folder / "go") << "\n";
  std::optional<process::Ending> ending;
  EXPECT_TRUE(eventually([&] { return (ending = launcher.reap()).has_value(); }));
  EXPECT_TRUE(ending->ok()) << ending->text();
  launcher.read_rest(process::Stream::out, note);
  EXPECT_EQ(pids.size(), 2U) << "a role was restarted";
}

/// A launcher is killed while its roles and their children ignore signals.
TEST(KilledLauncher, LeavesNobodyBehind) {
  process::Child launcher(helper({"supervise", "3", "ignore=2", "ignore=15", "pid", "fork", "wait"}));
  std::vector<pid_t> pids;
  EXPECT_TRUE(eventually([&] {
    launcher.read(process::Stream::out, [&](const std::string& line) { pids.push_back(number_in(line)); });
    return pids.size() == 6;
  }));
  for (const pid_t pid : pids) EXPECT_TRUE(alive(pid));
  kill(launcher.pid(), SIGKILL);
  for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return !alive(pid); })) << pid;
}

}  // namespace
}  // namespace lockstep::testing
