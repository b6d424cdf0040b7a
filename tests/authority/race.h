// Clients that race for the numbers of one register, and the check that each number has one winner.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "authority/register.h"
#include "base/mutex.h"

namespace lockstep::authority {

/// Winners by number.
class Winners {
 public:
  void add(const Group& group) {
    const base::MutexLock lock(mutex_);
    EXPECT_TRUE(ids_.emplace(group.number, group.id).second) << "two winners of group " << group.number;
  }
  [[nodiscard]] std::map<uint64_t, uint64_t> ids() {
    const base::MutexLock lock(mutex_);
    return ids_;
  }

 private:
  base::Mutex mutex_;
  std::map<uint64_t, uint64_t> ids_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Swaps as `member` until the register has reached that number. A swap without an answer is asked again.
inline void race(Register& client, int member, uint64_t last, Winners& winners) {
  Group known;
  for (uint64_t turn = 1; known.number < last; ++turn) {
    const Group next{known.number + 1, (turn << 8U) + static_cast<uint64_t>(member) + 1, {{member, 1}}};
    Answer answer;
    do {
      answer = swap_now(client, known, next);
      ASSERT_NE(answer.outcome, Outcome::refused) << answer.failure.message();
    } while (answer.outcome == Outcome::unanswered);
    if (answer.outcome == Outcome::won) winners.add(next);
    ASSERT_GE(answer.group.number, known.number + 1);
    known = answer.group;
  }
}

/// Lets the clients race to that number, a thread each, and checks that no number has two winners, and at most
/// `unknown` none: a winner without an answer does not hear of it if others follow first.
inline void expect_one_winner_each(const std::vector<std::unique_ptr<Register>>& clients, uint64_t last,
                                   uint64_t unknown = 0) {
  Winners winners;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] { race(*clients[i], static_cast<int>(i), last, winners); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::map<uint64_t, uint64_t> ids = winners.ids();
  EXPECT_GE(ids.size() + unknown, last);
  EXPECT_LE(ids.size(), last);
}

}  // namespace lockstep::authority
