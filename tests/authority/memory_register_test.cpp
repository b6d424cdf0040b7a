// Clients of a register in this process, and the thread that asks for them.
#include "authority/memory_register.h"

#include <gtest/gtest.h>

#include <atomic>

#include "authority/race.h"

namespace lockstep::authority {
namespace {

TEST(MemoryRegister, ReadsWhatWasSwapped) {
  MemoryAuthority authority;
  MemoryRegister one(authority);
  MemoryRegister other(authority);
  EXPECT_EQ(read_now(one).group, Group{});
  const Group first{1, 5, {{0, 9}, {1, 8}}};
  EXPECT_EQ(swap_now(one, {}, first).outcome, Outcome::won);
  const Answer read = read_now(other);
  EXPECT_EQ(read.outcome, Outcome::present);
  EXPECT_EQ(read.group, first);
}

TEST(MemoryRegister, SaysThatItIsAway) {
  MemoryAuthority authority;
  MemoryRegister client(authority);
  authority.set_away(true);
  EXPECT_EQ(read_now(client).outcome, Outcome::unanswered);
  EXPECT_EQ(swap_now(client, {}, {1, 5, {{0, 9}}}).failure.message(), "the authority of this test is away");
  EXPECT_EQ(authority.group(), Group{});
  authority.set_away(false);
  EXPECT_EQ(read_now(client).outcome, Outcome::present);
}

TEST(MemoryRegister, ALostAnswerIsResolvedByTheSameSwap) {
  MemoryAuthority authority;
  MemoryRegister one(authority);
  const Group mine{1, 5, {{0, 9}}};
  authority.lose_answers(1);
  EXPECT_EQ(swap_now(one, {}, mine).outcome, Outcome::unanswered);
  EXPECT_EQ(authority.group(), mine);
  EXPECT_EQ(swap_now(one, {}, mine).outcome, Outcome::won);
  EXPECT_EQ(swap_now(one, {}, {1, 6, {{1, 9}}}).outcome, Outcome::lost);
}

TEST(MemoryRegister, EachNumberHasOneWinner) {
  MemoryAuthority authority;
  std::vector<std::unique_ptr<Register>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<MemoryRegister>(authority));
  authority.lose_answers(50);
  expect_one_winner_each(clients, 300, 50);
}

TEST(MemoryRegister, AClientThatGoesGivesUpItsQuestions) {
  std::atomic<int> answered{0};
  for (int turn = 0; turn < 50; ++turn) {
    MemoryAuthority authority;
    MemoryRegister client(authority);
    for (int i = 0; i < 10; ++i) client.read([&answered](const Answer&) { ++answered; });
  }
  EXPECT_LE(answered, 500);
}

}  // namespace
}  // namespace lockstep::authority
