// Members as processes that are killed, stopped and restarted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "base/address.h"
#include "cluster/cluster_file.h"
#include "process/child_process.h"
#include "transport/streams.h"

namespace lockstep::allreduce {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;

class Processes : public ::testing::Test {
 protected:
  struct Member {
    std::unique_ptr<process::Child> child;
    std::vector<std::string> lines;
    std::vector<std::string> earlier;  ///< lines of earlier lives
    std::string group;                 ///< "0 1 2"
    uint64_t step = 0;
  };

  void make(int count) {
    spec = cluster::local_spec({.workers = count, .ps = 0, .evaluator = false, .layout = ""});
    for (const std::string& address : spec.workers) ports.emplace_back(base::parse_address(address).port);
    members.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) start(i);
  }
  void start(int index) {
    process::Command command;
    command.argv = {std::getenv("LOCKSTEP_ELASTIC_MEMBER"), std::to_string(index), std::to_string(min_workers)};
    for (const cluster::Task& task : spec.members()) command.argv.push_back(spec.address(task));
    Member& member = at(index);
    member.earlier.insert(member.earlier.end(), member.lines.begin(), member.lines.end());
    member = Member{std::make_unique<process::Child>(command), {}, std::move(member.earlier), "", 0};
  }
  Member& at(int index) { return members[static_cast<size_t>(index)]; }
  void kill(int index) {
    at(index).child->signal(SIGKILL);
    read_until([&] { return at(index).child->reap().has_value(); });
    at(index).child.reset();
    at(index).group.clear();
  }

  void take(Member& member, const std::string& line) {
    member.lines.push_back(line);
    if (line.starts_with("group ")) member.group = line.substr(line.find(' ', 6) + 1);
    if (line.starts_with("step ")) member.step = std::stoull(line.substr(5));
  }
  template <class Done>
  bool read_until(const Done& done, seconds at_most = seconds(100)) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (!done()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::vector<pollfd> watched;
      for (const Member& member : members) {
        if (member.child) watched.push_back({member.child->fd(process::Stream::out), POLLIN, 0});
      }
      poll(watched.data(), watched.size(), 20);
      for (Member& member : members) {
        if (!member.child) continue;
        member.child->read(process::Stream::out, [&](std::string_view line) { take(member, std::string(line)); });
      }
    }
    return true;
  }
  /// Waits until all of these are in one group and have made more steps.
  bool trains(const std::vector<int>& group) {
    std::string names;
    for (const int index : group) names += (names.empty() ? "" : " ") + std::to_string(index);
    const auto together = [&] {
      return std::all_of(group.begin(), group.end(), [&](int index) { return at(index).group == names; });
    };
    if (!read_until(together)) return false;
    const uint64_t before = at(group.front()).step;
    return read_until([&] { return at(group.front()).step > before + 50; });
  }
  void finish_all() {
    uint64_t step = 0;
    for (Member& member : members) {
      if (member.child) member.child->signal(SIGTERM);
    }
    for (Member& member : members) {
      if (!member.child) continue;
      std::optional<process::Ending> ending;
      ASSERT_TRUE(read_until([&] { return ending || (ending = member.child->reap()).has_value(); }));
      member.child->read_rest(process::Stream::out, [&](std::string_view line) { take(member, std::string(line)); });
      EXPECT_TRUE(ending->ok()) << ending->text() << ::testing::PrintToString(member.lines);
      ASSERT_FALSE(member.lines.empty());
      const auto last = std::find_if(member.lines.begin(), member.lines.end(),
                                     [](const std::string& line) { return line.starts_with("ended "); });
      ASSERT_NE(last, member.lines.end()) << ::testing::PrintToString(member.lines);
      const uint64_t here = std::stoull(last->substr(6));
      if (step == 0) step = here;
      EXPECT_EQ(here, step) << "all leave at the same step";
    }
  }
  std::string said() {
    std::string text;
    for (const Member& member : members) text += ::testing::PrintToString(member.lines) + "\n";
    return text;
  }
  /// Waits for a line: a member's report about another may come after the next group.
  bool says(int index, const std::string& part) {
    return read_until([&] {
      const auto& lines = at(index).lines;
      return std::any_of(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(part) != line.npos; });
    });
  }

  int min_workers = 0;
  cluster::Spec spec;
  std::vector<transport::testing::KeptPort> ports;  ///< reserved while their members are away
  std::vector<Member> members;
};

TEST_F(Processes, ThatAreKilledAreGoneOnWithoutAndLetInAgain) {
  make(3);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  kill(1);
  ASSERT_TRUE(trains({0, 2})) << said();
  EXPECT_TRUE(says(0, "worker:1 at " + spec.workers[1] + ": connection closed")) << said();
  start(1);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  kill(0);
  ASSERT_TRUE(trains({1, 2})) << said();
  kill(1);  // worker 2 waits: it is one of three
  start(0);
  start(1);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  finish_all();
}

TEST_F(Processes, ThatAreStoppedAreGivenUpByNameAndComeBackWhenTheyGoOn) {
  make(3);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  at(2).child->signal(SIGSTOP);
  ASSERT_TRUE(trains({0, 1})) << said();
  EXPECT_TRUE(says(0, "worker:2 at " + spec.workers[2] + ": no heartbeat for ")) << said();
  at(2).child->signal(SIGCONT);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  finish_all();
}

TEST_F(Processes, ALeaderThatIsStoppedForAMomentLosesNothing) {
  make(3);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  at(0).child->signal(SIGSTOP);
  ASSERT_TRUE(trains({1, 2})) << said();
  at(0).child->signal(SIGCONT);
  ASSERT_TRUE(trains({0, 1, 2})) << said();
  finish_all();
}

TEST_F(Processes, SurviveManyKills) {
  make(4);
  std::mt19937 random(7);
  ASSERT_TRUE(trains({0, 1, 2, 3})) << said();
  for (int round = 0; round < 10; ++round) {
    const int victim = static_cast<int>(random() % 4);
    const int second = static_cast<int>(random() % 4);
    kill(victim);
    if (second != victim && round % 2 == 0) kill(second);
    start(victim);
    if (!at(second).child) start(second);
    ASSERT_TRUE(trains({0, 1, 2, 3})) << "round " << round << "\n" << said();
  }
  finish_all();
}

/// Returns the number of entries of a folder in /proc of a member.
size_t entries(const process::Child& child, const std::string& folder) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(child.pid()) + "/" + folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST_F(Processes, OfALargeClusterHaveFewConnectionsAndGoOnWithoutThoseThatPassOnTheirMessages) {
  make(24);
  std::vector<int> all(24);
  std::iota(all.begin(), all.end(), 0);
  const auto without = [&](const std::set<int>& away) {
    std::vector<int> rest;
    std::copy_if(all.begin(), all.end(), std::back_inserter(rest), [&](int member) { return !away.contains(member); });
    return rest;
  };
  ASSERT_TRUE(trains(all)) << said();
  for (const Member& member : members) {
    EXPECT_LT(entries(*member.child, "task"), 45U);
    EXPECT_LT(entries(*member.child, "fd"), 110U);
  }
  kill(0);
  kill(2);
  ASSERT_TRUE(trains(without({0, 2}))) << said();
  EXPECT_TRUE(says(1, "worker:0 at " + spec.workers[0] + ": ")) << said();
  EXPECT_TRUE(says(1, "worker:2 at " + spec.workers[2] + ": ")) << said();
  at(1).child->signal(SIGSTOP);
  ASSERT_TRUE(trains(without({0, 1, 2}))) << said();
  EXPECT_TRUE(says(3, "worker:1 at " + spec.workers[1] + ": no heartbeat for ")) << said();
  at(1).child->signal(SIGCONT);
  start(0);
  start(2);
  ASSERT_TRUE(trains(all)) << said();
  finish_all();
}

}  // namespace
}  // namespace lockstep::allreduce
