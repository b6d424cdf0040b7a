// Whole groups that train by all-reduce, with the real rules, in thousands of histories of kills, stops, cuts,
// half-open connections, resets that look like death, power cuts, and an authority that fails and returns.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "simulation/elastic_member.h"
#include "simulation/explore.h"

namespace lockstep::simulation {
namespace {

constexpr double kAfterFaults = 300;  ///< seconds after the last fault in which training ends

ElasticSetup setup_of(uint64_t seed) {
  ElasticSetup setup;
  setup.members = 2 + static_cast<int>(seed % 4);
  const uint64_t rule = seed / 4 % 5;
  setup.authority = rule == 1 || rule == 3;
  setup.allow_split = rule == 4;
  setup.shared_disk = seed / 20 % 2 == 0;
  setup.passes = 3 * setup.members;
  if (seed / 40 % 2 == 1) setup.checkpoint_every = 2;
  return setup;
}

/// Large groups: members in a tree, which pass on each other's messages.
ElasticSetup large_setup_of(uint64_t seed) {
  ElasticSetup setup = setup_of(seed);
  setup.relayed = true;
  setup.members = 6 + static_cast<int>(seed % 9);
  setup.passes = setup.members;
  return setup;
}

std::vector<Fault> faults_for(const ElasticSetup& setup, uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15U);
  FaultMix mix;
  mix.power_cut = 0.5;
  mix.reject = 1;
  mix.disk_slow = 0.5;
  mix.until = 15;
  if (seed / 40 % 2 == 1) {
    mix.power_cut = 1;
    mix.disk_full = 1;
    mix.disk_lost = 1;
  }
  if (seed / 80 % 3 == 1) mix.interrupt = 2;
  const int everyone = setup.members + (setup.authority ? 1 : 0);
  std::vector<Fault> faults = plan_faults(random, mix, 1 + random.below(8), everyone, everyone);
  for (Fault& fault : faults) {
    // The authority remembers: without its data the members would end.
    if (fault.kind == FaultKind::disk_lost && fault.a >= setup.members) fault.kind = FaultKind::power_cut;
  }
  return faults;
}

std::vector<Fault> faults_of(uint64_t seed) { return faults_for(setup_of(seed), seed); }
std::vector<Fault> large_faults_of(uint64_t seed) { return faults_for(large_setup_of(seed), seed); }

Played play_with(const ElasticSetup& setup, uint64_t seed, const std::vector<Fault>& faults, bool record,
                 std::set<size_t>* sizes = nullptr) {
  std::optional<ElasticJudge> observer;  // outlives the members
  World world(seed, record);
  ElasticJudge& judge = observer.emplace(world, setup);
  const int everyone = setup.members + (setup.authority ? 1 : 0);
  for (int i = 0; i < everyone; ++i) world.add_machine(i < setup.members ? fmt::format("h{}", i) : "etcd's machine");
  std::vector<const ElasticMember*> members(static_cast<size_t>(setup.members));
  for (int i = 0; i < setup.members; ++i) {
    world.add_process(fmt::format("worker:{}", i), i,
                      [&](World& in, Process me) { return std::make_unique<ElasticMember>(in, me, judge); });
  }
  if (setup.authority) {
    world.add_process("etcd", setup.members,
                      [&](World& in, Process me) { return std::make_unique<RegisterActor>(in, me, judge); });
  }
  world.schedule(faults);
  const int every = setup.members > 50 ? 50 * setup.members : 1;  // a look takes long among many
  int events = 0;
  world.check_always([&] {
    if (++events % every == 0) judge.look();
  });
  const bool ended = world.run([&] { return judge.all_left(); }, world.healed_at() + kAfterFaults);
  if (!ended && world.failure().empty()) {
    std::string states;
    for (int i = 0; i < setup.members; ++i) {
      if (world.alive(i)) states += "\n  " + static_cast<const ElasticMember*>(world.actor(i))->state();
    }
    world.fail("training does not end:" + states);
  }
  if (ended) judge.look_at_end();
  if (sizes != nullptr) *sizes = judge.sizes();
  return played(world);
}

Played play(uint64_t seed, const std::vector<Fault>& faults, bool record) {
  return play_with(setup_of(seed), seed, faults, record);
}

Played play_large(uint64_t seed, const std::vector<Fault>& faults, bool record) {
  return play_with(large_setup_of(seed), seed, faults, record);
}

Suite elastic_groups() { return {"elastic groups", faults_of, play}; }
Suite large_groups() { return {"large groups", large_faults_of, play_large}; }

TEST(ElasticGroups, KeepTheirPromisesInEveryHistory) {
  const Choice chosen = choice(10000);
  const Explored explored = explore(elastic_groups(), chosen.seed, chosen.histories);
  EXPECT_FALSE(explored.failed) << explored.report;
  RecordProperty("histories", static_cast<int>(explored.histories));
}

TEST(LargeGroups, KeepTheirPromisesInEveryHistory) {
  const Choice chosen = choice(500);
  const Explored explored = explore(large_groups(), chosen.seed, chosen.histories);
  EXPECT_FALSE(explored.failed) << explored.report;
}

/// Many members train, a tenth of them dies at once, the others go on, and those that died come back.
TEST(LargeGroups, LoseATenthOfTheirMembersAndGoOn) {
  const auto members = static_cast<int>(number_of_flag("members", 200));
  ElasticSetup setup;
  setup.members = members;
  setup.relayed = true;
  setup.batch = 1;
  setup.passes = 40;  // as many steps
  setup.checkpoint_every = 1000;
  std::vector<Fault> faults;
  for (int i = 0; i < members / 10; ++i) faults.push_back({FaultKind::kill, 4, 3, 10 * i + 3, 0});
  std::set<size_t> sizes;
  const Played played = play_with(setup, 1, faults, false, &sizes);
  EXPECT_EQ(played.failure, "");
  const auto all = static_cast<size_t>(members);
  EXPECT_THAT(sizes, ::testing::IsSupersetOf({all, all - all / 10}));
}

TEST(ElasticGroups, AHistoryIsReplayedExactly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Played first = play(seed, faults_of(seed), false);
    const Played again = play(seed, faults_of(seed), true);
    EXPECT_EQ(first.digest, again.digest);
    EXPECT_EQ(first.events, again.events);
  }
}

}  // namespace
}  // namespace lockstep::simulation
