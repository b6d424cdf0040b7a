// Simulated workers for tests of the coordinator: they follow its plans and push as real ones do, without a network,
// and count the data positions that were applied.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cluster.pb.h"
#include "ps/coordinator.h"

namespace lockstep::ps::testing {

using train::StopReason;

/// How often each position of each pass is in the parameters.
using Books = std::map<std::pair<int64_t, int64_t>, int>;

inline void enter(Books& books, const std::vector<data::PassPart>& parts) {
  for (const data::PassPart& part : parts) {
    for (const base::Range& range : part.ranges) {
      for (int64_t i = range.begin; i < range.end; ++i) ++books[{part.pass, i}];
    }
  }
}

/// A worker's side of the protocol.
struct Player {
  enum class State : uint8_t { away, asking, computing, waiting, held, finished };

  int number = 0;
  uint64_t incarnation = 0;
  State state = State::away;
  data::Plan plan;
  int64_t per_update = 1;
  int64_t next = 0;    ///< next round of the plan
  int64_t rounds = 0;  ///< rounds of the plan since the last push
  uint64_t sequence = 0;
  uint64_t version = 0;
  Push push;
  std::vector<data::PassPart> batch;  ///< batch of the push in flight
};

class Play {
 public:
  explicit Play(const CoordinatorOptions& options, uint64_t version = 0, data::Remainder data = {})
      : coordinator(std::make_unique<Coordinator>(options, version, std::move(data), 0)),
        players(static_cast<size_t>(options.members)) {
    for (size_t i = 0; i < players.size(); ++i) players[i].number = static_cast<int>(i);
  }

  [[nodiscard]] const CoordinatorOptions& options() const { return coordinator->options(); }
  Player& player(int number) { return players[static_cast<size_t>(number)]; }

  /// Starts a new process of the worker, which asks to join.
  void come(int number) {
    Player& p = player(number);
    p.incarnation = ++processes_;
    p.sequence = 0;
    ask(p);
  }
  void come_all() {
    for (Player& p : players) come(p.number);
  }
  /// kill -9.
  void die(int number) {
    Player& p = player(number);
    coordinator->depart(p.number, p.incarnation);
    p.state = Player::State::away;
    settle();
  }
  /// Kills ps:0 and restarts it with its ledger; live workers reconnect and ask again.
  void restart_coordinator() {
    wire::Ledger ledger;
    coordinator->save(ledger, now);
    const CoordinatorOptions options = coordinator->options();
    coordinator = std::make_unique<Coordinator>(options, ledger, now);
    for (Player& p : players) {
      if (p.state == Player::State::computing || p.state == Player::State::waiting) {
        p.state = Player::State::computing;  // will send its push again
      } else if (p.state != Player::State::away && p.state != Player::State::finished) {
        ask(p);
      } else if (p.state == Player::State::finished) {
        say_finished(p);
      }
    }
    settle();
  }

  void ask(Player& p) {
    p.state = Player::State::asking;
    coordinator->join(p.number, p.incarnation);
    settle();
  }

  /// Computes the next batches, or finds that there are none.
  void compute(Player& p) {
    ASSERT_EQ(p.state, Player::State::computing);
    for (;;) {
      p.batch.clear();
      int64_t examples = 0;
      int64_t taken = 0;
      for (; taken < p.per_update; ++taken) {
        const data::Round round = p.plan.round(p.next + taken);
        if (options().passes > 0 && round.pass >= options().passes) break;
        if (!round.ranges.empty()) p.batch.push_back({round.pass, round.ranges});
        examples += round.count;
        if (round.index_in_part == round.rounds_in_part - 1) {
          ++taken;
          break;
        }
      }
      if (taken == 0) return finish(p, StopReason::data);
      p.next += taken;
      p.rounds += taken;
      if (examples == 0 && !options().sync) continue;
      p.push = {p.number, p.incarnation, ++p.sequence, p.version, p.plan.id, p.rounds, {1, 0, 0}};
      p.push.report.examples = static_cast<uint64_t>(examples);
      last_rounds_[p.number] = taken;
      return;
    }
  }
  /// Sends the computed push, for the first time or again.
  Verdict send(Player& p) {
    const Verdict verdict = coordinator->offer(p.push);
    switch (verdict) {
      case Verdict::accepted:
        p.state = Player::State::waiting;
        for (int server = 1; server < options().servers; ++server) {
          coordinator->received(server, p.number, p.incarnation, p.push.sequence);
        }
        break;
      case Verdict::repeated:
        p.state = Player::State::held;
        break;
      case Verdict::dropped:
        answer(p);
        break;
      case Verdict::rejoin:
        p.rounds = 0;
        ask(p);
        break;
      case Verdict::stopped:
        finish(p, coordinator->stopped());
        break;
    }
    settle();
    return verdict;
  }
  Verdict step(int number) {
    Player& p = player(number);
    compute(p);
    if (p.state == Player::State::finished) return Verdict::stopped;
    return send(p);
  }
  void finish(Player& p, StopReason reason) {
    p.state = Player::State::finished;
    finish_reason_[p.number] = reason;
    say_finished(p);
    settle();
  }

  /// Makes all versions that can be made and answers all workers that can be answered.
  void settle() {
    while (const std::optional<Decision> decision = coordinator->decide()) {
      for (const Contributor& c : decision->contributors) enter(books, player(c.member).batch);
      coordinator->committed(*decision);
      decisions.push_back(*decision);
      if (on_version) on_version(*decision);
    }
    const bool stop = coordinator->stopped() != StopReason::none;
    for (Player& p : players) {
      if (p.state == Player::State::asking && (coordinator->takes_part(p.number, p.incarnation) || stop)) {
        p.rounds = 0;
        listen(p, 0);
      } else if (p.state == Player::State::waiting) {
        const bool applied = coordinator->is_applied(p.number, p.push.sequence);
        if (!options().sync && applied) {
          p.state = Player::State::held;
        } else {
          answer(p);
        }
      }
      if (p.state == Player::State::held && coordinator->may_go_on(p.number)) {
        p.rounds = 0;
        listen(p, p.push.plan);
      }
    }
  }

  /// Wakes finished workers that are needed for work of others; returns false if none is.
  bool wake() {
    for (Player& p : players) {
      if (p.state != Player::State::finished || !coordinator->needed_again(p.number)) continue;
      ask(p);
      return true;
    }
    return false;
  }

  std::unique_ptr<Coordinator> coordinator;
  std::vector<Player> players;
  Books books;
  std::vector<Decision> decisions;
  std::function<void(const Decision&)> on_version;
  double now = 0;

 private:
  void say_finished(Player& p) {
    coordinator->finish(p.number, p.incarnation, finish_reason_[p.number], p.rounds, now);
  }
  /// Sync: delivers the answer to a push, if there is one yet.
  void answer(Player& p) {
    const bool stop = coordinator->stopped() != StopReason::none;
    const bool here = coordinator->takes_part(p.number, p.incarnation);
    if ((!options().sync || coordinator->version() <= p.push.base) && !stop && here) return;
    const bool applied = coordinator->is_applied(p.number, p.push.sequence);
    if (!stop && (!here || (!applied && p.push.rounds > 1))) {
      p.rounds = 0;
      return ask(p);
    }
    if (applied) {
      p.rounds = 0;
    } else {
      p.rounds -= last_rounds_[p.number];
      p.next -= last_rounds_[p.number];
    }
    listen(p, p.push.plan);
  }
  /// Takes a plan that the worker has not seen. `known` is the plan of its push; 0: it joins.
  void listen(Player& p, uint64_t known) {
    p.state = Player::State::computing;
    p.version = coordinator->version();
    if (const std::optional<data::Plan> plan = coordinator->unseen_plan(p.number, known)) {
      p.plan = *plan;
      p.per_update = coordinator->batches_per_update(p.number);
      p.next = p.rounds = 0;
    }
    if (coordinator->stopped() != StopReason::none) finish(p, coordinator->stopped());
  }

  uint64_t processes_ = 0;
  std::map<int, int64_t> last_rounds_;
  std::map<int, StopReason> finish_reason_;
};

/// Expects every position of every pass exactly once.
inline void expect_exactly_once(const Books& books, int64_t passes, int64_t examples) {
  ASSERT_EQ(books.size(), static_cast<size_t>(passes * examples));
  for (const auto& [position, times] : books) {
    ASSERT_EQ(times, 1) << "position " << position.second << " of pass " << position.first;
    ASSERT_LT(position.first, passes);
  }
}

inline CoordinatorOptions job(bool sync, int members, int64_t examples = 40, int64_t batch = 4) {
  CoordinatorOptions options;
  options.members = members;
  options.sync = sync;
  options.examples = examples;
  options.batch = batch;
  options.passes = 1;
  return options;
}

/// Runs the workers in turn until none has work left.
inline void run_in_turn(Play& play) {
  for (int moves = 0; moves < 10000 && !play.coordinator->all_done(); ++moves) {
    if (play.wake()) continue;
    Player& p = play.player(moves % play.options().members);
    if (p.state == Player::State::computing) play.step(p.number);
  }
  EXPECT_TRUE(play.coordinator->all_done());
}

}  // namespace lockstep::ps::testing
