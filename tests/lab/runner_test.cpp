// Errors found before anything in the lab is touched, and signals while a run trains.
#include "lab/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "lab/experiments.h"
#include "lab/run_process.h"
#include "process/caught_signals.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

/// Runs without the rights of root during its life.
class Unprivileged {
 public:
  Unprivileged() : before_(geteuid()) {
    if (before_ == 0) ok_ = seteuid(kNobody) == 0;
  }
  ~Unprivileged() {
    if (before_ == 0 && seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  uid_t before_;
  bool ok_ = true;
};

TEST(Runner, WithoutRootEmulatedNodesAreRefusedAndResultsStay) {
  const TempDir folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const lab::Experiment emulated = parse(kBase + "cluster: {emulate: on}\n");
  const Unprivileged user;
  ASSERT_TRUE(user.ok());
  int64_t id = 0;
  {
    lab::Database database(folder.path(), lab::Database::Access::write);
    id = database.plan(parse(kBase), folder / "e", {}, "");
    database.started(id, "e-r1", folder / "e/runs/e-r1");
    database.done(id, "e-r1", {{{"accuracy", 0.9}}, {}});
  }
  lab::RunnerOptions options;
  options.lab_dir = folder.path();
  options.keys = {"e-r1"};
  EXPECT_THAT(message_of<UsageError>([&] { (void)lab::run_experiment(emulated, options, [](const auto&) {}); }),
              AllOf(HasSubstr("need root"), HasSubstr("--local")));
  const lab::Results results = lab::Database(folder.path(), lab::Database::Access::read).results(id);
  EXPECT_EQ(results.runs[0].state, lab::RunState::done);
  EXPECT_DOUBLE_EQ(results.runs[0].number("accuracy"), 0.9);
  EXPECT_FALSE(std::filesystem::exists(folder / "e"));
}

TEST(Follow, AClosedTerminalMaySayItTwice) {
  const TempDir folder;
  const process::CaughtSignals signals;
  process::Command command;
  command.argv = {"sh", "-c",
                  "trap 'echo > saving; while [ ! -e go ]; do sleep 0.01; done; exit 130' INT\n"
                  "cd '" +
                      folder.path() + "'; echo > up; while :; do sleep 0.01; done"};
  int sent = 0;
  const lab::Followed run = lab::follow(command, "", folder / "failure.json", signals.fd(), [&] {
    if (sent == 2) std::ofstream(folder / "go") << "\n";  // the second signal has been read
    if (std::filesystem::exists(folder / (sent == 0 ? "up" : "saving")) && sent < 2) {
      kill(getpid(), SIGHUP);
      ++sent;
    }
  });
  EXPECT_EQ(run.signal, SIGHUP);
  EXPECT_EQ(run.ending->text(), "exit code 130");
}

}  // namespace
}  // namespace lockstep::testing
