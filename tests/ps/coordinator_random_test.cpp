// The coordinator against random histories: whatever happens to workers and the coordinator, each position of the data
// is applied exactly once, and the job ends.
#include <fmt/format.h>

#include <random>

#include "ps/coordinator_support.h"

namespace lockstep::ps::testing {
namespace {

using State = Player::State;

struct Chances {
  int death = 0;           ///< probability in percent per move
  int restart = 0;         ///< the same for restarts of the coordinator
  int lost_answer = 0;     ///< the same for repeated pushes
  bool all_return = true;  ///< false: some dead workers stay away
};

class History {
 public:
  History(const CoordinatorOptions& options, Chances chances, unsigned seed)
      : play(options), chances_(chances), random_(seed) {
    play.on_version = [this](const Decision& decision) { check_version(decision); };
  }

  void run() {
    constexpr int kMost = 60000;
    for (int i = 0; i < kMost; ++i) {
      if (play.coordinator->all_done() && nobody_works()) return;
      play.now += 0.01;
      move();
      if (::testing::Test::HasFatalFailure()) return;
    }
    FAIL() << "the job does not end";
  }

  Play play;

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  [[nodiscard]] bool nobody_works() const {
    return std::none_of(play.players.begin(), play.players.end(),
                        [](const Player& p) { return p.state != State::away && p.state != State::finished; });
  }
  [[nodiscard]] int present() const {
    return static_cast<int>(std::count_if(play.players.begin(), play.players.end(),
                                          [](const Player& p) { return p.state != State::away; }));
  }

  void move() {
    if (pick(100) < chances_.restart) return play.restart_coordinator();
    play.coordinator->expire(play.now);
    play.settle();
    if (play.wake()) return;
    const int number = pick(play.options().members);
    Player& p = play.player(number);
    if (p.state == State::away) {
      // The launcher restarts it, or not.
      if (chances_.all_return || present() == 0 || number % 2 == 0) {
        if (pick(4) == 0) play.come(number);
      }
      return;
    }
    if (pick(100) < chances_.death) return play.die(number);
    if (p.state == State::computing) advance(p);
  }

  void advance(Player& p) {
    const bool resend = p.push.incarnation == p.incarnation && p.push.sequence == p.sequence && p.sequence > 0 &&
                        pick(100) < chances_.lost_answer;
    if (!resend) return static_cast<void>(play.step(p.number));
    const Verdict verdict = play.coordinator->offer(p.push);
    ASSERT_TRUE(verdict == Verdict::repeated || verdict == Verdict::stopped || verdict == Verdict::rejoin ||
                verdict == Verdict::dropped)
        << static_cast<int>(verdict);
  }

  void check_version(const Decision& decision) {
    const int64_t aggregate = play.options().aggregate;
    if (aggregate > 0 && aggregate <= play.options().members) {
      ASSERT_LE(decision.contributors.size(), static_cast<size_t>(aggregate));
    }
  }

  Chances chances_;
  std::mt19937 random_;
};

CoordinatorOptions job(bool sync, int members) {
  CoordinatorOptions options;
  options.members = members;
  options.sync = sync;
  options.batch = 4;
  options.examples = 107;
  options.passes = 3;
  options.start_wait = 1;
  return options;
}

void expect_each_once(const CoordinatorOptions& options, Chances chances, unsigned seeds) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History history(options, chances, seed);
    history.run();
    if (::testing::Test::HasFatalFailure()) return;
    expect_exactly_once(history.play.books, options.passes, options.examples);
    if (::testing::Test::HasFatalFailure()) return;
    EXPECT_EQ(history.play.coordinator->examples(), static_cast<uint64_t>(options.passes * options.examples));
  }
}

constexpr unsigned kSeeds = 150;

TEST(RandomHistory, SyncAppliesEachPositionOnceWhoeverDies) {
  expect_each_once(job(true, 3), {.death = 3}, kSeeds);
  expect_each_once(job(true, 5), {.death = 10, .lost_answer = 10, .all_return = false}, kSeeds);
}

TEST(RandomHistory, SyncWithBackupsAppliesEachPositionOnceWhoeverDies) {
  CoordinatorOptions options = job(true, 4);
  options.aggregate = 2;
  expect_each_once(options, {}, kSeeds);
  expect_each_once(options, {.death = 5, .lost_answer = 5}, kSeeds);
}

TEST(RandomHistory, SyncWithSeveralBatchesPerWorkerAppliesEachPositionOnceWhoeverDies) {
  CoordinatorOptions options = job(true, 3);
  options.aggregate = 7;
  expect_each_once(options, {.death = 5}, kSeeds);
  options.aggregate = 0;
  options.accumulate = 2;
  expect_each_once(options, {.death = 5}, kSeeds);
}

TEST(RandomHistory, SyncWithSeveralServersAppliesEachPositionOnceWhoeverDies) {
  CoordinatorOptions options = job(true, 3);
  options.servers = 3;
  expect_each_once(options, {.death = 5}, kSeeds);
}

TEST(RandomHistory, AsyncAppliesEachPositionOnceWhoeverDies) {
  expect_each_once(job(false, 3), {.death = 3}, kSeeds);
  expect_each_once(job(false, 5), {.death = 10, .lost_answer = 10, .all_return = false}, kSeeds);
}

TEST(RandomHistory, AsyncWithAccumulationAppliesEachPositionOnceWhoeverDies) {
  CoordinatorOptions options = job(false, 3);
  options.accumulate = 3;
  expect_each_once(options, {.death = 5}, kSeeds);
}

TEST(RandomHistory, BoundedStalenessAppliesEachPositionOnceAndEndsWhoeverDies) {
  for (const int64_t bound : {0, 1, 4}) {
    CoordinatorOptions options = job(false, 3);
    options.max_staleness = bound;
    expect_each_once(options, {}, 20);
    expect_each_once(options, {.death = 5}, kSeeds);
  }
}

TEST(RandomHistory, ARestartedCoordinatorAppliesNothingTwiceAndForgetsNothing) {
  expect_each_once(job(true, 3), {.death = 2, .restart = 2}, kSeeds);
  expect_each_once(job(false, 3), {.death = 2, .restart = 2, .lost_answer = 5}, kSeeds);
  CoordinatorOptions options = job(true, 4);
  options.aggregate = 3;
  expect_each_once(options, {.death = 2, .restart = 2}, kSeeds);
}

TEST(RandomHistory, AMembershipWithMoreWorkersThanExamplesEnds) {
  CoordinatorOptions options = job(true, 6);
  options.examples = 5;
  options.batch = 1;
  expect_each_once(options, {.death = 5}, 50);
  options.sync = false;
  expect_each_once(options, {.death = 5}, 50);
}

}  // namespace
}  // namespace lockstep::ps::testing
