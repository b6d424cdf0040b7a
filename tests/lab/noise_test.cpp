// Invented looks at a machine, and a real program beside the run.
#include "lab/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>
#include <vector>

#include "base/parallel.h"
#include "lab/experiments.h"
#include "observe/monitor/host_watch.h"

namespace lockstep::testing {
namespace {

using observe::HostLook;
using observe::HostTally;
using observe::HostUse;
using observe::NodeStat;
using ::testing::HasSubstr;

/// One second on two cores with 100 ticks, in hundredths of a core.
struct Second {
  uint64_t busy = 0;  ///< the run and others
  uint64_t own = 0;
  uint64_t stolen = 0;
  uint64_t interrupts = 0;
};

HostUse use_of(const std::vector<Second>& seconds, double promised, HostTally::Machine machine = {2, 2, 100}) {
  HostTally tally(machine, promised);
  HostLook look{10, NodeStat(), 30};
  look.stat->user = 5000;
  tally.look(look);
  for (const Second& second : seconds) {
    look.seconds += 1;
    look.stat->user += second.busy;
    look.stat->system += second.interrupts;
    look.stat->interrupts += second.interrupts;
    look.stat->steal += second.stolen;
    look.stat->idle += static_cast<uint64_t>(100 * machine.cores) - second.busy - second.stolen - second.interrupts;
    look.own_seconds += 0.01 * static_cast<double>(second.own);
    tally.look(look);
  }
  return tally.use();
}

lab::Measured noise_of(const std::vector<Second>& seconds, double promised = 0,
                       HostTally::Machine machine = {2, 2, 100}) {
  lab::Measured values;
  lab::add_noise(values, use_of(seconds, promised, machine), promised);
  return values;
}

TEST(Noise, ARunAloneIsNotDisturbed) {
  const lab::Measured values = noise_of({{200, 199}, {150, 149}});
  EXPECT_FALSE(lab::is_disturbed(values));
  EXPECT_NEAR(values.at("others_share"), 0.005, 1e-9);
  EXPECT_EQ(lab::disturbed_text(values), "");
}

TEST(Noise, OtherProgramsBeyondATenthOfTheMachineDisturb) {
  EXPECT_FALSE(lab::is_disturbed(noise_of({{119, 100}})));
  const lab::Measured values = noise_of({{160, 100}, {140, 100}});
  EXPECT_TRUE(lab::is_disturbed(values));
  EXPECT_EQ(lab::disturbed_text(values), "other programs used 25 % of the machine");
}

TEST(Noise, AShortBurstInALongRunDoesNotDisturb) {
  std::vector<Second> seconds(30, Second{100, 100});
  seconds[10] = {200, 60};
  EXPECT_FALSE(lab::is_disturbed(noise_of(seconds)));
}

TEST(Noise, TimeThatTheHostStealsDisturbs) {
  EXPECT_EQ(lab::disturbed_text(noise_of({{100, 100, 10}})), "the host stole 5 % of the machine");
  EXPECT_FALSE(lab::is_disturbed(noise_of({{100, 100, 2}})));
}

TEST(Noise, InterruptsAreNotAnotherProgram) { EXPECT_FALSE(lab::is_disturbed(noise_of({{100, 100, 0, 60}}))); }

TEST(Noise, NodesMissTheirQuotaOnlyWhileNoCoreIsIdle) {
  // 9 % by others: too little to disturb by itself, but the nodes were promised both cores.
  EXPECT_EQ(lab::disturbed_text(noise_of({{200, 182}}, 2)), "its nodes missed 9 % of their CPU");
  EXPECT_FALSE(lab::is_disturbed(noise_of({{200, 182}}, 1.8)));
  EXPECT_FALSE(lab::is_disturbed(noise_of({{180, 162}}, 2)));  // a core was idle: the nodes did not want more
}

TEST(Noise, CoresThatTheRunMayNotUseAreOthersToUse) {
  const HostTally::Machine part{8, 2, 100};
  EXPECT_FALSE(lab::is_disturbed(noise_of({{750, 190}}, 0, part)));
  EXPECT_TRUE(lab::is_disturbed(noise_of({{780, 100}}, 0, part)));
}

TEST(Noise, ARunThatCtrlZStoppedIsDisturbedOnAQuietMachine) {
  lab::Measured values;
  lab::add_stop(values, 0.4);
  EXPECT_TRUE(lab::is_disturbed(values));
  lab::add_noise(values, use_of({{50, 50}}, 0), 0);
  EXPECT_TRUE(lab::is_disturbed(values));
  EXPECT_EQ(lab::disturbed_text(values), "Ctrl-Z stopped it for 40 % of its time");
}

TEST(Noise, AMachineThatCannotBeReadIsNotJudged) {
  HostTally tally({2, 2, 100}, 2);
  tally.look({1, std::nullopt, 0});
  tally.look({2, std::nullopt, 1});
  lab::Measured values;
  lab::add_noise(values, tally.use(), 2);
  EXPECT_TRUE(values.empty());
  EXPECT_FALSE(lab::is_disturbed(values));
}

TEST(Noise, TheNumberOfFurtherTriesIsInTheFile) {
  EXPECT_EQ(parse(kBase).retries, 2);
  EXPECT_EQ(parse(kBase + "retries: 0\n").retries, 0);
  EXPECT_THAT(refusal(kBase + "retries: 21\n"), HasSubstr("takes a whole number from 0 to 20"));
}

void burn(double seconds) {
  const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
  while (std::clock() < end) {
  }
}

/// A busy process that is nobody's child, as other programs are. Ends with the object, at the latest after 100 s of
/// CPU.
class OtherProgram {
 public:
  OtherProgram() {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return;
    const pid_t between = fork();
    if (between == 0) {
      const pid_t other = fork();
      if (other == 0) {
        burn(100);
        _exit(0);
      }
      (void)!write(pipe[1], &other, sizeof other);
      _exit(0);
    }
    (void)!read(pipe[0], &pid_, sizeof pid_);
    close(pipe[0]);
    close(pipe[1]);
    waitpid(between, nullptr, 0);
  }
  ~OtherProgram() {
    if (pid_ > 0) kill(pid_, SIGKILL);
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

 private:
  pid_t pid_ = -1;
};

TEST(Noise, ABusyProgramBesideTheRunIsSeenAndTheRunItselfIsNot) {
  const std::vector<OtherProgram> others(static_cast<size_t>(base::available_cores()) / 4 + 1);
  observe::HostWatch watch(0);
  const pid_t own = fork();
  if (own == 0) {
    burn(0.5);
    _exit(0);
  }
  waitpid(own, nullptr, 0);
  watch.look(true);
  const HostUse use = watch.use();
  if (!(use.seconds > 0)) GTEST_SKIP() << "/proc/stat cannot be read here";
  EXPECT_GE(use.own, 0.4);
  lab::Measured values;
  lab::add_noise(values, use, 0);
  EXPECT_TRUE(lab::is_disturbed(values)) << values["others_share"];
  EXPECT_THAT(lab::disturbed_text(values), HasSubstr("other programs used"));
}

}  // namespace
}  // namespace lockstep::testing
