// ps:0's coordinator and the followers of the other servers against random histories: messages are late, and servers,
// workers and connections die at any moment. Every update is on each server or on none, in the same order.
#include <fmt/format.h>

#include <deque>
#include <random>
#include <set>
#include <string>

#include "ps/coordinator_support.h"
#include "ps/follower.h"

namespace lockstep::ps::testing {
namespace {

struct Faults {
  int worker_dies = 0;  ///< per 1000 events
  int server_dies = 0;
  int connection_dies = 0;
};

/// A version, as a server made it.
struct Applied {
  uint64_t version = 0;
  int member = 0;
  PushName push;
  bool operator==(const Applied&) const = default;
};

class ServersHistory {
 public:
  ServersHistory(const CoordinatorOptions& options, const Faults& faults, unsigned seed)
      : options_(options), faults_(faults), random_(seed) {
    coordinator_ = std::make_unique<Coordinator>(options_, 0, data::Remainder{}, 0);
    write_down();
    servers_.resize(static_cast<size_t>(options_.servers) - 1);
    for (int i = 0; i < options_.members; ++i) {
      workers_.emplace_back();
      workers_.back().number = i;
      workers_.back().sent.assign(static_cast<size_t>(options_.servers), false);
    }
  }

  void run() {
    constexpr int kMost = 400000;
    for (int i = 0; i < kMost; ++i) {
      now_ += 0.01;
      event();
      if (::testing::Test::HasFatalFailure()) return;
      if (is_over()) break;
    }
    ASSERT_TRUE(is_over()) << "the job does not end";
    for (const Server& server : servers_) ASSERT_EQ(server.log.size(), log_.size());
    expect_exactly_once(books_, options_.passes, options_.examples);
  }

 private:
  enum class Doing : uint8_t { nothing, asking, pulling, waiting, levelling, finished };
  struct Worker {
    int number = 0;
    Doing doing = Doing::nothing;  ///< nothing: it is dead
    uint64_t incarnation = 0;
    uint64_t sequence = 0;
    uint64_t version = 0;
    data::Plan plan;
    int64_t next = 0;
    int64_t rounds = 0;
    Push push;
    Verdict verdict = Verdict::rejoin;
    std::vector<bool> sent;  ///< the push, by server
  };
  struct Server {
    Follower follower{0, {}};
    bool connected = false;
    std::deque<Decision> from_ps0;
    std::deque<wire::Received> to_ps0;
    std::vector<Applied> log;
    std::set<uint64_t> lost;  ///< incarnations whose pushes it lost as it died
  };

  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  [[nodiscard]] bool fails(int chance) { return pick(1000) < chance; }
  [[nodiscard]] bool stopped() const { return coordinator_->stopped() != train::StopReason::none; }

  [[nodiscard]] bool is_over() const {
    if (!coordinator_->all_done()) return false;
    const auto level = [&](const Server& server) { return server.log.size() == log_.size(); };
    return std::all_of(servers_.begin(), servers_.end(), level) &&
           std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.doing == Doing::finished; });
  }

  void event() {
    if (fails(faults_.server_dies)) return pick(2) == 0 ? restart_ps0() : restart(servers_[pick_server()]);
    if (fails(faults_.connection_dies)) return cut(servers_[pick_server()]);
    coordinator_->expire(now_);
    Server& server = servers_[pick_server()];
    switch (pick(4)) {
      case 0:
        return server.connected ? to_follower(server) : connect(server);
      case 1:
        return to_coordinator(server);
      case 2:
        return apply(server);
      default:
        return move(workers_[static_cast<size_t>(pick(options_.members))]);
    }
  }
  size_t pick_server() { return static_cast<size_t>(pick(static_cast<int>(servers_.size()))); }
  [[nodiscard]] int index_of(const Server& server) const { return 1 + static_cast<int>(&server - servers_.data()); }

  // ps:0.

  void write_down() {
    wire::Ledger ledger;
    coordinator_->save(ledger, now_);
    disk_ = ledger.SerializeAsString();
  }
  void decide() {
    while (const std::optional<Decision> decision = coordinator_->decide()) {
      coordinator_->committed(*decision);
      const Contributor& c = decision->contributors.front();
      log_.push_back({decision->version, c.member, name_of(c)});
      ASSERT_TRUE(seen_.insert({c.incarnation, c.sequence}).second) << "a push counts twice";
      for (const Contributed& made : coordinator_->contributions()) enter(books_, made.parts);
      write_down();
      if (fails(faults_.server_dies)) return restart_ps0();  // before anyone heard of it
      for (Server& server : servers_) {
        if (server.connected) server.from_ps0.push_back(*decision);
      }
    }
  }
  void restart_ps0() {
    wire::Ledger ledger;
    ASSERT_TRUE(ledger.ParseFromString(disk_));
    coordinator_ = std::make_unique<Coordinator>(options_, ledger, now_);
    for (Server& server : servers_) cut(server);
    for (Worker& worker : workers_) {
      worker.sent[0] = false;
      if (worker.doing == Doing::asking || worker.doing == Doing::pulling)
        coordinator_->join(worker.number, worker.incarnation);
      if (worker.doing == Doing::finished) leave(worker);
    }
  }

  // The other servers.

  void cut(Server& server) {
    server.connected = false;
    server.from_ps0.clear();
    server.to_ps0.clear();
  }
  void connect(Server& server) {
    server.connected = true;
    coordinator_->forget(index_of(server));
    const auto missed = coordinator_->missed(server.follower.version());
    ASSERT_TRUE(missed) << "at version " << server.follower.version() << " of " << coordinator_->version();
    for (const Decision& decision : *missed) server.from_ps0.push_back(decision);
    for (const auto& [member, push] : server.follower.here()) tell(server, member, push);
  }
  static void tell(Server& server, int member, const PushName& push) {
    if (!server.connected) return;
    wire::Received received;
    received.set_member(member);
    received.set_incarnation(push.incarnation);
    received.set_sequence(push.sequence);
    received.set_version(server.follower.version());
    server.to_ps0.push_back(received);
  }
  void to_follower(Server& server) {
    if (server.from_ps0.empty()) return;
    server.follower.announced(server.from_ps0.front(), now_);
    server.from_ps0.pop_front();
  }
  void to_coordinator(Server& server) {
    if (server.to_ps0.empty()) return;
    const wire::Received received = server.to_ps0.front();
    server.to_ps0.pop_front();
    coordinator_->reached(index_of(server), received.version());
    coordinator_->received(index_of(server), received.member(), received.incarnation(), received.sequence());
    decide();
  }
  void apply(Server& server) {
    const auto next = server.follower.next(now_);
    if (!next) return;
    const Contributor& c = next->update.contributors.front();
    if (!next->missing.empty()) {
      ASSERT_TRUE(server.lost.contains(c.incarnation)) << "a gradient that it never lost";
      ASSERT_NE(workers_[static_cast<size_t>(c.member)].incarnation, c.incarnation) << "its worker could send it again";
    }
    server.follower.committed(now_);
    server.log.push_back({next->update.version, c.member, name_of(c)});
    ASSERT_LE(server.log.size(), log_.size()) << "it applies what ps:0 has not counted";
    ASSERT_EQ(server.log.back(), log_[server.log.size() - 1]);
  }
  void restart(Server& server) {
    for (const auto& [member, push] : server.follower.here()) server.lost.insert(push.incarnation);
    server.follower = Follower(server.follower.version(), server.follower.applied());
    cut(server);
    for (Worker& worker : workers_) worker.sent[static_cast<size_t>(index_of(server))] = false;
  }

  // Workers.

  void move(Worker& worker) {
    if (worker.doing != Doing::nothing && worker.doing != Doing::finished && fails(faults_.worker_dies * 4)) {
      coordinator_->depart(worker.number, worker.incarnation);
      worker.doing = Doing::nothing;
      return;
    }
    switch (worker.doing) {
      case Doing::nothing:
        worker.incarnation = ++processes_;
        worker.sequence = 0;
        return ask(worker);
      case Doing::asking:
        return joined(worker);
      case Doing::pulling:
        return pulled(worker);
      case Doing::waiting:
        return pick(2) == 0 ? send(worker) : answered(worker);
      case Doing::levelling:
        return pick(2) == 0 ? send(worker) : levelled(worker);
      case Doing::finished:
        if (coordinator_->needed_again(worker.number)) ask(worker);
        return;
    }
  }
  void ask(Worker& worker) {
    worker.doing = Doing::asking;
    worker.rounds = 0;
    coordinator_->join(worker.number, worker.incarnation);
    decide();
  }
  void leave(const Worker& worker) {
    coordinator_->finish(worker.number, worker.incarnation, train::StopReason::data, worker.rounds, now_);
  }
  void joined(Worker& worker) {
    if (!coordinator_->takes_part(worker.number, worker.incarnation) && !stopped()) return;
    listen(worker, 0);
    worker.doing = Doing::pulling;
  }
  /// Every server is asked for the version at which it joined.
  void pulled(Worker& worker) {
    const auto has = [&](const Server& server) { return server.follower.version() >= worker.version; };
    if (std::all_of(servers_.begin(), servers_.end(), has)) compute(worker);
  }
  void listen(Worker& worker, uint64_t known) {
    worker.version = coordinator_->version();
    if (const auto plan = coordinator_->unseen_plan(worker.number, known)) {
      worker.plan = *plan;
      worker.next = worker.rounds = 0;
    }
  }
  void compute(Worker& worker) {
    for (;;) {
      const data::Round round = worker.plan.round(worker.next);
      if (stopped() || round.pass >= options_.passes) {
        worker.doing = Doing::finished;
        return leave(worker);
      }
      ++worker.next;
      ++worker.rounds;
      if (round.count == 0) continue;
      worker.push = {worker.number,
                     worker.incarnation,
                     ++worker.sequence,
                     worker.version,
                     worker.plan.id,
                     worker.rounds,
                     {1, 0, static_cast<uint64_t>(round.count)}};
      worker.sent.assign(worker.sent.size(), false);
      worker.doing = Doing::waiting;
      return;
    }
  }
  void send(Worker& worker) {
    const int server = pick(options_.servers);
    if (worker.sent[static_cast<size_t>(server)]) return;
    worker.sent[static_cast<size_t>(server)] = true;
    const PushName name{worker.push.incarnation, worker.push.sequence};
    if (server == 0) {
      worker.verdict = coordinator_->offer(worker.push);
      return decide();
    }
    Server& there = servers_[static_cast<size_t>(server) - 1];
    if (there.follower.is_applied(worker.number, name)) return;
    there.follower.arrived(worker.number, name);
    tell(there, worker.number, name);
  }
  void answered(Worker& worker) {
    if (!worker.sent[0]) return;
    const bool applied = coordinator_->is_applied(worker.number, worker.push.sequence) &&
                         coordinator_->incarnation(worker.number) == worker.incarnation;
    const bool here = coordinator_->takes_part(worker.number, worker.incarnation);
    if (applied) {
      worker.doing = Doing::levelling;
    } else if (worker.verdict == Verdict::rejoin || (!here && !stopped())) {
      ask(worker);
    } else if (stopped()) {
      worker.doing = Doing::finished;
      leave(worker);
    }
  }
  void levelled(Worker& worker) {
    const PushName name{worker.push.incarnation, worker.push.sequence};
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (!worker.sent[i + 1] || !servers_[i].follower.is_applied(worker.number, name)) return;
    }
    if (!coordinator_->takes_part(worker.number, worker.incarnation)) return ask(worker);
    worker.rounds = 0;
    listen(worker, worker.push.plan);
    compute(worker);
  }

  CoordinatorOptions options_;
  Faults faults_;
  std::mt19937 random_;
  std::unique_ptr<Coordinator> coordinator_;
  std::string disk_;  ///< ps:0's ledger
  std::vector<Applied> log_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;
  Books books_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  uint64_t processes_ = 0;
  double now_ = 0;
};

void expect_the_same_everywhere(int servers, const Faults& faults, unsigned seeds) {
  CoordinatorOptions options;
  options.members = 3;
  options.servers = servers;
  options.sync = false;
  options.batch = 4;
  options.examples = 107;
  options.passes = 2;
  options.start_wait = 1;
  options.record = true;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ServersHistory(options, faults, seed).run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(RandomServers, ApplyTheSameUpdatesInTheSameOrder) {
  expect_the_same_everywhere(2, {}, 20);
  expect_the_same_everywhere(3, {}, 20);
}

TEST(RandomServers, ApplyTheSameUpdatesWhicheverServerDies) {
  expect_the_same_everywhere(2, {.server_dies = 3}, 150);
  expect_the_same_everywhere(3, {.server_dies = 3, .connection_dies = 5}, 100);
}

TEST(RandomServers, ApplyTheSameUpdatesWhicheverWorkerDies) { expect_the_same_everywhere(2, {.worker_dies = 5}, 150); }

TEST(RandomServers, ApplyTheSameUpdatesWhoeverDies) {
  expect_the_same_everywhere(2, {.worker_dies = 2, .server_dies = 2, .connection_dies = 2}, 150);
  expect_the_same_everywhere(3, {.worker_dies = 2, .server_dies = 2, .connection_dies = 2}, 150);
}

}  // namespace
}  // namespace lockstep::ps::testing
