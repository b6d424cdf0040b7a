// Real processes that update a shard and are killed with SIGKILL at random moments.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/temp_dir.h"
#include "ps/parameter_shard.h"
#include "ps/shard_support.h"

namespace lockstep::ps {
namespace {

using testing::bytes_of;
using testing::numbered_update;
using testing::numbered_values;
using testing::settings_of;
using testing::text_of;
using testing::Undisturbed;

struct Case {
  optim::Method method;
  Durability durability;
  size_t count;
  int kills;
};

ParameterShardOptions options_of(const Case& c, const std::string& file) {
  ParameterShardOptions options;
  options.optimizer = settings_of(c.method);
  options.parameters = c.count;
  options.durability = c.durability;
  options.file = file;
  options.identity = 42;
  return options;
}

std::string ledger_of(uint64_t version) { return "ledger of version " + std::to_string(version); }

/// Runs in the child until it is killed: continues at the file's version and reports every version it makes.
[[noreturn]] void update_for_ever(const Case& c, const std::string& file, int acknowledged) {
  ParameterShard shard(options_of(c, file));
  if (!shard.initialised()) shard.initialise(0, numbered_values(1000000, c.count), {}, bytes_of(ledger_of(0)));
  std::vector<View> held;
  for (uint64_t number = shard.current().version;; ++number) {
    const auto gradient = numbered_values(number, c.count);
    const Contribution one{gradient};
    const View made = shard.apply({&one, 1}, 1, numbered_update(number), bytes_of(ledger_of(number + 1)));
    if (::write(acknowledged, &made.version, sizeof(made.version)) < 0) ::_exit(1);
    if (number % 5 == 0) held.push_back(made);  // other buffers are used, and more made
    if (held.size() > 3) held.clear();
  }
}

/// Starts a child, kills it `delay` after its start, or after its first update if `working`, and returns the last
/// version that it reported.
uint64_t run_and_kill(const Case& c, const std::string& file, bool working, std::chrono::microseconds delay) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const base::FileHandle read_end(ends[0]);
  base::FileHandle write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      update_for_ever(c, file, write_end.get());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(1);
  }
  write_end.reset();
  // The pipe holds less than the child may write meanwhile, so it is drained on its own thread.
  uint64_t last = 0;
  std::promise<void> first;
  std::thread drain([&] {
    const auto next = [&] { return ::read(read_end.get(), &last, sizeof(last)) == sizeof(last); };
    const bool more = next();
    first.set_value();
    while (more && next()) {
    }
  });
  if (working) first.get_future().wait();
  std::this_thread::sleep_for(delay);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  drain.join();
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
  return last;
}

class Kills : public ::testing::TestWithParam<Case> {};

TEST_P(Kills, NothingAcknowledgedIsLostAndNothingIsHalfDone) {
  const Case& c = GetParam();
  const lockstep::testing::TempDir folder;
  const std::string file = folder / "state";
  std::mt19937 random(static_cast<unsigned>(c.kills) * 31 + static_cast<unsigned>(c.count));
  Undisturbed expected(settings_of(c.method), c.count);
  uint64_t reached = 0;
  for (int kill = 0; kill < c.kills; ++kill) {
    const bool working = kill % 3 != 0;
    const uint64_t acknowledged =
        run_and_kill(c, file, working, std::chrono::microseconds(random() % (working ? 6000 : 12000)));
    ParameterShard shard(options_of(c, file));
    if (!shard.initialised()) {
      EXPECT_EQ(std::max(acknowledged, reached), 0U);
      continue;
    }
    const View found = shard.current();
    ASSERT_GE(found.version, std::max(acknowledged, reached)) << "kill " << kill;
    reached = found.version;
    expected.advance_to(reached);
    ASSERT_TRUE(expected.equals(found)) << "kill " << kill << " at version " << reached;
    ASSERT_EQ(text_of(found.ledger), ledger_of(reached));
  }
  EXPECT_GT(reached, 0U) << "no child ever came to update";
}

INSTANTIATE_TEST_SUITE_P(All, Kills,
                         ::testing::Values(Case{optim::Method::sgd, Durability::process, 500, 15},
                                           Case{optim::Method::sgd, Durability::process, 60000, 10},
                                           Case{optim::Method::momentum, Durability::process, 20000, 15},
                                           Case{optim::Method::adam, Durability::process, 20000, 15},
                                           Case{optim::Method::adam, Durability::machine, 2000, 10}),
                         [](const auto& tested) {
                           return std::string(optim::name(tested.param.method)) + "_" +
                                  std::to_string(tested.param.count) +
                                  (tested.param.durability == Durability::machine ? "_machine" : "_process");
                         });

/// Runs in the single-stepped child: one update between two stops.
[[noreturn]] void update_between_stops(const Case& c, const std::string& file) {
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ParameterShard shard(options_of(c, file));
  const auto gradient = numbered_values(shard.current().version, c.count);
  const std::string ledger = ledger_of(shard.current().version + 1);
  const Contribution one{gradient};
  const optim::Update update = numbered_update(shard.current().version);
  ::raise(SIGSTOP);
  shard.apply({&one, 1}, 1, update, bytes_of(ledger));
  ::raise(SIGSTOP);
  ::_exit(0);
}

/// Lets the child execute one instruction; returns false at its next SIGSTOP.
bool step(pid_t child) {
  int status = 0;
  if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) throw std::runtime_error("cannot step");
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) throw std::runtime_error("the child ended while stepped");
  return WSTOPSIG(status) == SIGTRAP;
}

/// Stops the child at every instruction of its update; calls `look` with the file's content whenever it changed.
template <class Look>
void step_through(pid_t child, const std::string& file, const Look& look) {
  std::string before = lockstep::testing::get_file(file);
  uint64_t size = 0;
  const auto handle = base::open_for_reading(file, size);
  const char* now = static_cast<const char*>(::mmap(nullptr, size, PROT_READ, MAP_SHARED, handle.get(), 0));
  ASSERT_NE(now, MAP_FAILED);
  while (step(child)) {
    if (std::memcmp(before.data(), now, size) == 0) continue;
    before.assign(now, size);
    look(before);
    if (::testing::Test::HasFatalFailure()) break;
  }
  ::munmap(const_cast<char*>(now), size);
}

TEST(KillAtEveryInstruction, LeavesTheOldOrTheNewVersionWhole) {
  for (const auto method : {optim::Method::sgd, optim::Method::adam}) {
    const lockstep::testing::TempDir folder;
    const Case c{method, Durability::process, 40, 1};
    const std::string file = folder / "state";
    {
      ParameterShard(options_of(c, file)).initialise(0, numbered_values(1000000, c.count), {}, bytes_of(ledger_of(0)));
    }
    for (uint64_t version = 0; version < 3; ++version) {
      const pid_t child = ::fork();
      if (child == 0) update_between_stops(c, file);
      int status = 0;
      ::waitpid(child, &status, 0);
      if (!WIFSTOPPED(status)) GTEST_SKIP() << "this system does not let a process trace its child";
      int seen = 0;
      uint64_t newest = version;
      step_through(child, file, [&](const std::string& bytes) {
        const std::string copy = folder / "copy";
        lockstep::testing::put_file(copy, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
        const ParameterShard shard(options_of(c, copy));
        const View found = shard.current();
        ASSERT_TRUE(found.version == newest || found.version == version + 1);
        newest = found.version;
        Undisturbed expected(settings_of(c.method), c.count);
        expected.advance_to(newest);
        ASSERT_TRUE(expected.equals(found)) << "version " << newest;
        ASSERT_EQ(text_of(found.ledger), ledger_of(newest));
        ++seen;
      });
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      ASSERT_EQ(newest, version + 1);
      EXPECT_GT(seen, 5);
    }
  }
}

TEST(LockFreeKills, KeepEveryUpdateThatWasCounted) {
  const lockstep::testing::TempDir folder;
  const Case c{optim::Method::sgd, Durability::process, 3000, 1};
  const pid_t child = ::fork();
  if (child == 0) {
    ParameterShard shard(options_of(c, folder / "state"));
    shard.initialise(7, numbered_values(1000000, c.count), {}, {});
    for (uint64_t i = 0; i < 20; ++i) {
      shard.commit_in_place(8 + i, bytes_of(i == 19 ? "twenty" : "fewer"));
      shard.apply_in_place(numbered_values(i, c.count), numbered_update(i));
    }
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const ParameterShard shard(options_of(c, folder / "state"));
  Undisturbed expected(settings_of(c.method), c.count);
  expected.advance_to(20);
  EXPECT_EQ(shard.current().version, 27U);
  EXPECT_EQ(text_of(shard.current().ledger), "twenty");
  EXPECT_TRUE(expected.equals(shard.current()));
}

}  // namespace
}  // namespace lockstep::ps
