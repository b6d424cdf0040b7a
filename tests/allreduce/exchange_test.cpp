// The all-reduce exchange, with thread groups of this process as members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "allreduce/all_reduce_exchange.h"
#include "allreduce/communicator.h"
#include "allreduce/static_membership.h"
#include "base/mutex.h"
#include "collective/in_process.h"

namespace lockstep::allreduce {
namespace {

using exchange::StepInfo;
using testing::ElementsAre;
using testing::HasSubstr;
using train::StopReason;

constexpr size_t kParameters = 1000;

program::ParameterStore make_store() {
  graph::ParameterInfo info;
  info.name = "w";
  info.shape = Shape{static_cast<int64_t>(kParameters)};
  return {{info}, 1};
}

AllReduceOptions make_options(int members) {
  AllReduceOptions options;
  options.rules.optimizer.method = optim::Method::sgd;
  options.rules.schedule.base = 1;
  options.batch = 10;
  options.examples = 1000;
  options.bucket_bytes = 1024;
  for (int i = 0; i < members; ++i) options.names.push_back("worker:" + std::to_string(i));
  options.log = [](std::string_view, const std::string&) {};
  return options;
}

/// Members that meet in memory: a group forms when all expected members want one.
class Meeting {
 public:
  explicit Meeting(std::vector<int> expected) : expected_(std::move(expected)) {}

  void expect(std::vector<int> members) {
    const base::MutexLock lock(mutex_);
    expected_ = std::move(members);
    changed_.notify_all();
  }
  /// Adds a member from the next group on.
  void let_in(int member) {
    const base::MutexLock lock(mutex_);
    while (round_ == 0) changed_.wait(mutex_);
    expected_.push_back(member);
    waiting_ = member;
  }
  bool someone_waits() {
    const base::MutexLock lock(mutex_);
    return waiting_ >= 0;
  }

  Formed form(int member, const Standing& standing) {
    const base::MutexLock lock(mutex_);
    here_[member] = standing;
    formed_.erase(member);
    while (formed_.count(member) == 0) {
      if (all_here()) {
        make();
        changed_.notify_all();
      } else {
        changed_.wait(mutex_);
      }
    }
    return formed_.at(member);
  }

 private:
  bool all_here() LOCKSTEP_REQUIRES(mutex_) {
    return std::all_of(expected_.begin(), expected_.end(), [&](int m) {
      mutex_.assert_held();
      return here_.count(m) > 0;
    });
  }
  void make() LOCKSTEP_REQUIRES(mutex_) {
    auto group = collective::make_in_process_group(static_cast<int>(expected_.size()));
    Formed formed;
    formed.number = static_cast<uint64_t>(++round_);
    formed.members = expected_;
    const auto better = [](const Standing& a, const Standing& b) {
      return std::make_tuple(a.whole, a.live, a.step) > std::make_tuple(b.whole, b.live, b.step);
    };
    formed.standing = here_.at(expected_.front());
    for (size_t rank = 0; rank < expected_.size(); ++rank) {
      const Standing& standing = here_.at(expected_[rank]);
      if (!better(standing, formed.standing)) continue;
      formed.standing = standing;
      formed.source = static_cast<int>(rank);
    }
    for (size_t rank = 0; rank < expected_.size(); ++rank) {
      formed.collective = std::move(group[rank]);
      formed_[expected_[rank]] = formed;
      here_.erase(expected_[rank]);
      if (waiting_ == expected_[rank]) waiting_ = -1;
    }
  }

  base::Mutex mutex_;
  base::Condition changed_;
  std::vector<int> expected_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, Standing> here_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, Formed> formed_ LOCKSTEP_GUARDED_BY(mutex_);
  int round_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int waiting_ LOCKSTEP_GUARDED_BY(mutex_) = -1;
};

class MeetingMember final : public Membership {
 public:
  MeetingMember(Meeting& meeting, int member) : meeting_(meeting), member_(member) {}
  base::Result<Formed> form(const Standing& standing) override { return meeting_.form(member_, standing); }
  [[nodiscard]] bool wants_regroup() const override { return meeting_.someone_waits(); }
  base::Result<Parting> close(StopReason /*why*/) override { return member_ == 0 ? Parting::closes : Parting::leaves; }
  void end() override {}
  [[nodiscard]] bool first_survivor() const override { return member_ == 0; }

 private:
  Meeting& meeting_;
  int member_;
};

/// One member with its own parameters.
struct Trained {
  Trained(Meeting& meeting, int member, AllReduceOptions options)
      : store(make_store()), exchange(store, std::move(options), std::make_unique<MeetingMember>(meeting, member)) {}

  /// Makes a step in which every gradient of this member is `gradient`.
  StepInfo step(float gradient, uint64_t examples = 10) {
    exchange.begin({number, examples, 1});
    std::fill(store.gradients().begin(), store.gradients().end(), gradient);
    if (examples > 0) {
      // Announced as a backward pass does: from the end.
      exchange.ready({600, 400}, {});
      exchange.ready({0, 600}, {});
    }
    StepInfo info =
        std::move(exchange.finish({1.5 * static_cast<double>(examples), examples / 2, examples})).value_or_throw();
    number = info.step;
    return info;
  }
  void join() { number = std::move(exchange.join()).value_or_throw()->step; }

  program::ParameterStore store;
  AllReduceExchange exchange;
  uint64_t number = 0;
};

template <class Body>
void each(int members, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < members; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(AllReduceExchange, AveragesByExamplesAndUpdatesAlike) {
  Meeting meeting({0, 1, 2});
  each(3, [&](int i) {
    Trained member(meeting, i, make_options(3));
    member.join();
    const float before = member.store.values()[7];
    // 10 examples of gradient 1, 10 of gradient 2, 5 of gradient 5: their mean is 55 / 25.
    const StepInfo info = member.step(i == 2 ? 5.0F : static_cast<float>(i + 1), i == 2 ? 5 : 10);
    EXPECT_FLOAT_EQ(member.store.values()[7], before - 55.0F / 25.0F);
    EXPECT_EQ(info.step, 1U);
    EXPECT_EQ(info.group.examples, 25U);
    EXPECT_DOUBLE_EQ(info.group.loss_sum, 37.5);
    EXPECT_EQ(info.examples_total, 25U);
  });
}

TEST(AllReduceExchange, WhoHasNothingOfARoundCountsNothing) {
  Meeting meeting({0, 1});
  each(2, [&](int i) {
    Trained member(meeting, i, make_options(2));
    member.join();
    const float before = member.store.values()[0];
    member.step(3.0F, i == 0 ? 10 : 0);
    EXPECT_FLOAT_EQ(member.store.values()[0], before - 3.0F);
  });
}

TEST(AllReduceExchange, AGoalOfOneEndsAllAtTheSameStep) {
  Meeting meeting({0, 1});
  each(2, [&](int i) {
    Trained member(meeting, i, make_options(2));
    member.join();
    member.step(1.0F);
    const float before = member.store.values()[0];
    if (i == 0) {
      ASSERT_TRUE(member.exchange.leave({StopReason::accuracy}));
      EXPECT_TRUE(member.exchange.leads());
    } else {
      const StepInfo info = member.step(1.0F);
      EXPECT_EQ(info.outcome, exchange::StepOutcome::ended);
      EXPECT_EQ(info.stop_reason(), StopReason::accuracy);
      EXPECT_EQ(info.step, 1U);
      ASSERT_TRUE(member.exchange.leave({info.stop_reason()}));
    }
    EXPECT_EQ(member.store.values()[0], before) << "the step in which one left is not made";
  });
}

TEST(AllReduceExchange, AJoinerGetsStateAndTheRestOfTheDataIsSharedAnew) {
  Meeting meeting({0, 1});
  AllReduceOptions options = make_options(3);
  options.rules.optimizer.method = optim::Method::momentum;
  std::vector<float> last(3);
  each(3, [&](int i) {
    Trained member(meeting, i, options);
    if (i == 2) {
      meeting.let_in(2);
    } else {
      member.join();
      for (;;) {
        const StepInfo info = member.step(1.0F);
        if (!info.plan) continue;
        EXPECT_EQ(info.plan->shard.count, 3);
        EXPECT_EQ(info.plan->shard.index, i);
        int64_t left = 0;
        for (const data::PassPart& part : info.plan->data.parts) left += part.size();
        EXPECT_EQ((static_cast<uint64_t>(left) + info.examples_total) % 1000, 0U) << "nothing twice, nothing lost";
        break;
      }
    }
    if (i == 2) member.join();
    member.step(1.0F);
    last[static_cast<size_t>(i)] = member.store.values()[5];
    EXPECT_EQ(member.exchange.totals()[0].steps, member.number) << "what was seen before came along";
  });
  EXPECT_EQ(last[0], last[1]);
  EXPECT_EQ(last[0], last[2]) << "parameters and momentum are the others'";
}

TEST(AllReduceExchange, AStepThatFailsIsMadeAgainByThoseWhoAreLeft) {
  Meeting meeting({0, 1, 2});
  std::vector<std::string> said;
  base::Mutex mutex;
  each(3, [&](int i) {
    AllReduceOptions options = make_options(3);
    options.log = [&](std::string_view, const std::string& text) {
      const base::MutexLock lock(mutex);
      said.push_back(text);
    };
    auto member = std::make_unique<Trained>(meeting, i, options);
    member->join();
    member->step(1.0F);
    if (i == 1) {
      meeting.expect({0, 2});
      member.reset();  // in the middle of the second step
      return;
    }
    const float before = member->store.values()[3];
    StepInfo info = member->step(2.0F);
    EXPECT_EQ(info.outcome, exchange::StepOutcome::retry);
    EXPECT_EQ(info.step, 1U);
    EXPECT_EQ(member->store.values()[3], before);
    ASSERT_TRUE(info.plan);
    EXPECT_EQ(info.plan->shard.count, 2);
    info = member->step(2.0F);
    EXPECT_TRUE(info.applied());
    EXPECT_FLOAT_EQ(member->store.values()[3], before - 2.0F);
  });
  EXPECT_THAT(said, testing::Contains(HasSubstr("step 2 is repeated")));
}

/// A group of worker:0 and worker:2, which leaves at once.
class Deserted final : public Membership {
 public:
  base::Result<Formed> form(const Standing& standing) override {
    if (formed_) return base::Failure{base::FailureKind::gone, "nobody is left"};
    formed_ = true;
    auto halves = collective::make_in_process_group(2);
    Formed formed;
    formed.number = 1;
    formed.members = {0, 2};
    formed.collective = std::move(halves.front());
    formed.transfer = false;
    formed.standing = standing;
    return formed;
  }
  base::Result<Parting> close(StopReason /*why*/) override { return Parting::closes; }
  void end() override {}
  [[nodiscard]] bool first_survivor() const override { return true; }

 private:
  bool formed_ = false;
};

TEST(AllReduceExchange, ARankThatFailedIsNamedByItsTask) {
  program::ParameterStore store = make_store();
  AllReduceExchange exchange(store, make_options(3), std::make_unique<Deserted>());
  ASSERT_TRUE(exchange.join());
  exchange.begin({0, 10, 1});
  exchange.ready({0, kParameters}, {});
  const auto made = exchange.finish({1, 1, 10});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().kind, base::FailureKind::gone);
  EXPECT_EQ(made.failure().message(), "worker:2: has left the group: nobody is left");
}

/// A group of two whose other member, the source, dies while this one waits for its state.
class Widowed final : public Membership {
 public:
  Widowed(bool holds, std::atomic<bool>& interrupt) : holds_(holds), interrupt_(interrupt) {}

  base::Result<Formed> form(const Standing& standing) override {
    if (met_) {
      after = standing;
      interrupt_ = true;
      return base::Failure{base::FailureKind::gone, "nobody is left"};
    }
    met_ = !std::exchange(trains_first, false);
    auto group = collective::make_in_process_group(2);
    Formed formed;
    formed.number = 7;
    formed.members = {0, 1};
    formed.collective = std::move(group[static_cast<size_t>(rank)]);
    formed.source = 1 - rank;
    formed.holds = holds_;
    formed.standing = standing;
    formed.standing.live = true;
    formed.transfer = met_;
    if (standing.live) ++formed.standing.step;
    return formed;
  }
  base::Result<Parting> close(StopReason /*why*/) override { return Parting::closes; }
  void end() override {}
  [[nodiscard]] bool first_survivor() const override { return true; }

  int rank = 1;
  bool trains_first = false;  ///< it is in a group before, whose other member dies, too
  Standing after;

 private:
  bool holds_;
  std::atomic<bool>& interrupt_;
  bool met_ = false;
};

class DeathOfTheSource : public testing::TestWithParam<bool> {};

TEST_P(DeathOfTheSource, LeavesAWholeStateToThoseWhoHadIt) {
  std::atomic<bool> interrupt = false;
  AllReduceOptions options = make_options(2);
  options.interrupt = &interrupt;
  program::ParameterStore store = make_store();
  auto membership = std::make_unique<Widowed>(GetParam(), interrupt);
  const Widowed& widow = *membership;
  AllReduceExchange exchange(store, std::move(options), std::move(membership));
  ASSERT_TRUE(exchange.join());
  EXPECT_EQ(widow.after.whole, GetParam());
}

/// Trains, loses its group, and is to get a newer state, which does not arrive.
base::Result<StepInfo> step_of_one_who_is_behind(AllReduceExchange& exchange) {
  exchange.join().value_or_throw();
  exchange.begin({5, 10, 1});
  exchange.ready({0, kParameters}, {});
  return exchange.finish({1, 1, 10});
}

TEST(AllReduceExchange, WhoIsBehindKeepsItsStateIfTheNewerOneDoesNotArrive) {
  std::atomic<bool> interrupt = false;
  AllReduceOptions options = make_options(2);
  options.interrupt = &interrupt;
  options.initial.step = 5;
  program::ParameterStore store = make_store();
  const std::vector<float> values(store.values().begin(), store.values().end());
  auto membership = std::make_unique<Widowed>(false, interrupt);
  Widowed& widow = *membership;
  widow.trains_first = true;
  AllReduceExchange exchange(store, std::move(options), std::move(membership));
  ASSERT_TRUE(step_of_one_who_is_behind(exchange));
  EXPECT_TRUE(widow.after.whole);
  EXPECT_TRUE(widow.after.live);
  EXPECT_TRUE(widow.after.earlier) << "it is not the state of its latest group";
  EXPECT_EQ(widow.after.step, 5U);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), store.values().begin()));
}

TEST(AllReduceExchange, WhoKeptItsEarlierStateDoesNotWriteItAsTheLeader) {
  std::atomic<bool> unused = false;
  program::ParameterStore store = make_store();
  auto membership = std::make_unique<Widowed>(false, unused);
  membership->rank = 0;
  membership->trains_first = true;
  AllReduceExchange exchange(store, make_options(2), std::move(membership));
  EXPECT_FALSE(step_of_one_who_is_behind(exchange));
  EXPECT_FALSE(exchange.leads());
}

INSTANTIATE_TEST_SUITE_P(Held, DeathOfTheSource, testing::Bool());

/// Records its calls; the run has a state of step `kept`.
class KeptRun final : public exchange::RunEvents {
 public:
  explicit KeptRun(uint64_t kept = 0) : kept_(kept) {}

  void training_begins(uint64_t /*step*/, uint64_t /*examples*/) override {}
  void group_breaks_up() override {}
  void bucket_size_found(size_t /*bytes*/) override {}
  [[nodiscard]] bool is_newest(uint64_t step) const override { return kept_ <= step; }

 private:
  uint64_t kept_;
};

/// A group of one that breaks with no next group: a user interrupted it.
class Ended final : public Membership {
 public:
  Ended(bool over, bool first_survivor) : over_(over), first_survivor_(first_survivor) {}

  base::Result<Formed> form(const Standing& standing) override {
    if (formed_) return base::Failure{base::FailureKind::interrupted, "another member was interrupted"};
    Formed formed;
    formed.number = 1;
    formed.members = {0};
    collective = formed.collective = std::move(collective::make_in_process_group(1).front());
    formed.standing = standing;
    formed_ = true;
    return formed;
  }
  base::Result<Parting> close(StopReason /*why*/) override { return Parting::closes; }
  void end() override { ended = true; }
  [[nodiscard]] bool over() const override { return over_; }
  [[nodiscard]] bool interrupted() const override { return formed_; }
  [[nodiscard]] bool first_survivor() const override { return first_survivor_; }

  std::shared_ptr<collective::Collective> collective;
  bool ended = false;

 private:
  bool over_;
  bool first_survivor_;
  bool formed_ = false;
};

/// Returns true if the member writes the final results for all; the run has a state of step `kept`.
bool writes_in_the_end(bool over, bool first_survivor, uint64_t kept) {
  AllReduceOptions options = make_options(1);
  KeptRun run(kept);
  options.events = &run;
  program::ParameterStore store = make_store();
  auto membership = std::make_unique<Ended>(over, first_survivor);
  Ended& group = *membership;
  AllReduceExchange exchange(store, std::move(options), std::move(membership));
  EXPECT_TRUE(exchange.join());
  exchange.begin({0, 10, 1});
  EXPECT_TRUE(exchange.finish({1, 1, 10}).value_or_throw().applied());
  EXPECT_TRUE(exchange.leads());
  group.collective->abort("the test says so");
  exchange.begin({1, 10, 1});
  const StepInfo info = exchange.finish({1, 1, 10}).value_or_throw();
  EXPECT_EQ(info.stop_reason(), StopReason::interrupted);
  EXPECT_EQ(info.outcome, over ? exchange::StepOutcome::missed : exchange::StepOutcome::ended);
  EXPECT_FALSE(exchange.leave({info.stop_reason()}).value_or_throw());
  exchange.end();
  EXPECT_FALSE(group.ended) << "nobody is told that all is over";
  return exchange.leads();
}

TEST(EndWithoutAGroup, IsWrittenByTheFirstWhoIsLeftWhereNothingNewerIs) {
  EXPECT_TRUE(writes_in_the_end(false, true, 0));
  EXPECT_TRUE(writes_in_the_end(false, true, 1));
  EXPECT_FALSE(writes_in_the_end(false, true, 2)) << "another one has gone on";
  EXPECT_FALSE(writes_in_the_end(false, false, 0)) << "another one writes";
  EXPECT_FALSE(writes_in_the_end(true, true, 0)) << "all is written";
}

class Sent : public testing::TestWithParam<std::pair<collective::Element, double>> {};

TEST_P(Sent, InAnotherFormGivesNearlyTheSame) {
  Meeting meeting({0, 1});
  std::vector<float> values(2);
  each(2, [&](int i) {
    AllReduceOptions options = make_options(2);
    options.wire = GetParam().first;
    options.top_k = GetParam().second;
    Trained member(meeting, i, options);
    member.join();
    const float before = member.store.values()[0];
    for (int step = 0; step < 10; ++step) member.step(0.125F + static_cast<float>(i));
    values[static_cast<size_t>(i)] = before - member.store.values()[0];
  });
  EXPECT_EQ(values[0], values[1]);
  if (GetParam().second == 0) {
    EXPECT_FLOAT_EQ(values[0], 6.25F);
  } else {
    EXPECT_GT(values[0], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Sent,
                         testing::Values(std::pair(collective::Element::bfloat16, 0.0),
                                         std::pair(collective::Element::float16, 0.0),
                                         std::pair(collective::Element::float32, 1.0)));

TEST(Notes, TellTheSumsAndTheGravestReason) {
  std::vector<float> sum(notes_size(2));
  std::vector<float> one(sum.size());
  Note note;
  note.report = {123456.789, 7, 64};
  note.stop = StopReason::epochs;
  note.times = {1, 2, 3, 4, 0};
  note.times.machine = (1U << 24U) - 1;
  write_note(note, 0, one);
  sum = one;
  note.report = {0.001, 1, 0};
  note.stop = StopReason::not_finite;
  note.regroup = true;
  write_note(note, 1, one);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  Notes notes;
  read_notes(sum, 2, notes);
  EXPECT_NEAR(notes.report.loss_sum, 123456.790, 0.01);
  EXPECT_EQ(notes.report.correct, 8U);
  EXPECT_EQ(notes.report.examples, 64U);
  EXPECT_EQ(notes.contributors, 1);
  EXPECT_TRUE(notes.regroup);
  EXPECT_EQ(notes.stop, StopReason::not_finite);
  EXPECT_EQ(notes.stopped_by, 1);
  EXPECT_FLOAT_EQ(notes.times[1].compute, 2);
  EXPECT_FLOAT_EQ(notes.times[0].examples, 64);
  EXPECT_EQ(notes.times[0].machine, (1U << 24U) - 1);
}

TEST(StaticMembership, EveryoneStartsWhereTheFirstIs) {
  auto group = collective::make_in_process_group(2);
  std::vector<std::shared_ptr<collective::Collective>> members;
  for (auto& member : group) members.push_back(std::move(member));
  each(2, [&](int i) {
    StaticMembership membership(members[static_cast<size_t>(i)], "start it again");
    Standing standing;
    if (i == 0) {
      standing.step = 12;
      standing.examples = 340;
      standing.data = {{{3, {{10, 20}, {40, 50}}}, {4, {{0, 5}}}}, 5};
    }
    base::Result<Formed> formed = membership.form(standing);
    ASSERT_TRUE(formed);
    EXPECT_EQ(formed.value().standing.step, 12U);
    EXPECT_EQ(formed.value().standing.data, (data::Remainder{{{3, {{10, 20}, {40, 50}}}, {4, {{0, 5}}}}, 5}));
    EXPECT_EQ(membership.form(standing).failure().message(), "start it again");
  });
}

TEST(Communicator, TakesDenormalNumbersAsZeroOnBothThreads) {
  volatile float small = 2e-38F;
  std::array<float, 2> quarters{1.0F, 1.0F};
  Communicator communicator;
  for (float& quarter : quarters) {
    const Communicator::Operation divide = [&] {
      quarter = small / 4;
      return base::Status{};
    };
    if (&quarter == quarters.data()) {
      communicator.post(divide);
    } else {
      EXPECT_TRUE(communicator.run(divide));
    }
  }
  EXPECT_EQ(quarters, (std::array<float, 2>{}));
  EXPECT_GT(small / 4, 0.0F);
}

}  // namespace
}  // namespace lockstep::allreduce
