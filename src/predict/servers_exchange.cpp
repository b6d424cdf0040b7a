// Parameter servers: pushes in buckets, updates when enough gradients are there (sync) or one by one (async), answers
// with the new parameters. Follows src/ps: with several servers the first decides, and the others apply what it
// announces.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "predict/exchange.h"

namespace lockstep::predict {
namespace {

constexpr double kAnnouncement = 300;  // bytes of a commit, or of the end of an answer
/// Waking another thread of a server, relative to a message: the threads that read announcements leave updates to
/// another one, and that one wakes those that send the answers.
constexpr double kHandOver = 0.5;

class ServersModel final : public ExchangeModel {
 public:
  explicit ServersModel(World& world);

  [[nodiscard]] const std::vector<StepPart>& parts() const override { return parts_; }
  void begin(size_t worker) override;
  void computed(size_t worker, size_t part, Action next) override;
  [[nodiscard]] ExchangeTotals totals() const override { return totals_; }

 private:
  struct Worker {
    uint64_t base = 0;    ///< version that it computes on
    uint64_t read = 0;    ///< version of the latest answer of the first server
    uint64_t clock = 0;   ///< iterations
    size_t complete = 0;  ///< servers that have the whole push
    size_t answers = 0;
    double pushed = 0;   ///< time at which the push was sent
    double offered = 0;  ///< time at which all servers had it
    double waited = 0;   ///< for other workers
    Action next;
  };
  /// A worker's push at a server.
  struct Inbox {
    int missing = 0;
    bool waits = false;  ///< complete, and not answered
  };
  struct Server {
    std::vector<Inbox> inboxes;
    std::deque<std::pair<double, Action>> updates;  ///< CPU time of each, one at a time
    bool updating = false;
  };

  void send(size_t worker, size_t part);
  void taken(size_t worker, size_t server, Action go_on);
  void serve(size_t server, double cost, Action done);
  void received(size_t server, size_t worker);
  void complete(size_t server, size_t worker);
  void told(size_t worker);
  void announce(size_t from, size_t to, Action heard);
  void offer(size_t worker);
  void commit();
  void apply_async(size_t worker);
  void answer_all(size_t server, size_t last);
  void update(size_t server, double contributions, Action applied);
  void next_update(size_t server);
  void answer(size_t server, size_t worker);
  void answered(size_t worker);
  void advance_clock(size_t worker);
  void let_go(size_t worker);
  [[nodiscard]] Network::Connection connection_of(size_t worker, size_t server) const {
    return 1 + worker * servers_.size() + server;
  }
  [[nodiscard]] uint64_t slowest() const { return clocks_.begin()->first; }
  [[nodiscard]] bool too_far(size_t worker) const {
    const int most = world_.training.max_staleness;
    return most >= 0 && workers_[worker].clock > slowest() + static_cast<uint64_t>(most);
  }

  World& world_;
  const Training& training_;
  const Costs& costs_;
  std::vector<StepPart> parts_;
  std::vector<double> shard_bytes_;
  std::vector<int> messages_;  ///< frames of a push, by server
  size_t needed_;
  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  std::vector<size_t> contributors_;   ///< of the next version
  std::map<uint64_t, size_t> clocks_;  ///< workers at each clock
  std::vector<size_t> held_;           ///< workers too far ahead of the slowest
  uint64_t version_ = 0;
  ExchangeTotals totals_;
};

ServersModel::ServersModel(World& world)
    : world_(world),
      training_(world.training),
      costs_(world.training.costs),
      parts_(push_parts(world.training)),
      shard_bytes_(bytes_of_servers(world.training)),
      messages_(world.training.servers.size()),
      needed_(training_.aggregate > 0 ? std::min(static_cast<size_t>(training_.aggregate), training_.workers.size())
                                      : training_.workers.size()),
      workers_(training_.workers.size()),
      servers_(training_.servers.size()) {
  for (const StepPart& part : parts_) {
    for (size_t s = 0; s < messages_.size(); ++s) messages_[s] += part.messages[s];
  }
  for (Server& server : servers_) server.inboxes.resize(workers_.size());
  clocks_[0] = workers_.size();
}

void ServersModel::begin(size_t worker) {
  Worker& w = workers_[worker];
  w.base = w.read;
  w.complete = w.answers = 0;
  w.waited = 0;
  for (size_t s = 0; s < servers_.size(); ++s) servers_[s].inboxes[worker] = {messages_[s], false};
}

void ServersModel::computed(size_t worker, size_t part, Action next) {
  double cost = 0;
  for (size_t s = 0; s < servers_.size(); ++s) {
    cost += parts_[part].messages[s] * costs_.message + parts_[part].bytes[s] * costs_.byte;
  }
  const double began = world_.events.now();
  const bool last = part + 1 == parts_.size();
  if (last && training_.workers[worker].cost > 0)
    cost += training_.workers[worker].exchange / training_.workers[worker].cost;
  if (last) workers_[worker].next = std::move(next);
  world_.run_messages(worker, cost, [this, worker, part, began, next = std::move(next)]() mutable {
    send(worker, part);
    taken(worker, 0, [this, worker, began, next = std::move(next)] {
      if (world_.counting) world_.times[worker].push += world_.events.now() - began;
      world_.span("worker", worker, "push", began);
      workers_[worker].pushed = world_.events.now();
      if (next) next();
    });
  });
}

/// Calls `go_on` when the worker's sockets to this server and those after it have taken its gradients: its thread waits
/// for one after the other, and sends nothing to the others meanwhile.
void ServersModel::taken(size_t worker, size_t server, Action go_on) {
  if (server == servers_.size()) return go_on();
  world_.network.when_taken(connection_of(worker, server), [this, worker, server, go_on = std::move(go_on)]() mutable {
    taken(worker, server + 1, std::move(go_on));
  });
}

void ServersModel::send(size_t worker, size_t part) {
  const size_t from = training_.workers[worker].node;
  for (size_t i = 0; i < servers_.size(); ++i) {
    // The first server comes last: it decides as soon as it has the push, if the others have it.
    const size_t s = servers_.size() - 1 - i;
    const int messages = parts_[part].messages[s];
    for (int m = 0; m < messages; ++m) {
      const double bytes = parts_[part].bytes[s] / messages;
      const auto arrived = [this, s, worker, bytes] {
        world_.events.after(costs_.wake, [this, s, worker, bytes] {
          serve(s, costs_.message + bytes * costs_.byte, [this, s, worker] { received(s, worker); });
        });
      };
      world_.network.send(from, training_.servers[s].node, bytes + kAnnouncement, arrived, connection_of(worker, s));
    }
  }
}

/// Works for `cost` seconds on a server's node.
void ServersModel::serve(size_t server, double cost, Action done) {
  cost *= training_.servers[server].cost;
  world_.server_cpu[server] += cost;
  world_.cpu_of_server(server).run(cost, 1, std::move(done));
}

void ServersModel::received(size_t server, size_t worker) {
  if (--servers_[server].inboxes[worker].missing == 0) complete(server, worker);
}

void ServersModel::complete(size_t server, size_t worker) {
  Worker& w = workers_[worker];
  servers_[server].inboxes[worker].waits = true;
  if (training_.sync && w.base < version_) {  // too late
    if (++w.complete == servers_.size()) {
      ++totals_.offered;
      ++totals_.dropped;
    }
    return answer(server, worker);
  }
  if (server == 0) return told(worker);
  announce(server, 0, [this, worker] { told(worker); });
}

/// The first server knows that one more server has the whole push.
void ServersModel::told(size_t worker) {
  Worker& w = workers_[worker];
  if (++w.complete < servers_.size()) return;
  ++totals_.offered;
  w.offered = world_.events.now();
  offer(worker);
}

/// Servers tell each other what they have and decide: small messages, which cost time at both ends.
void ServersModel::announce(size_t from, size_t to, Action heard) {
  serve(from, costs_.message, [this, from, to, heard = std::move(heard)]() mutable {
    const auto arrived = [this, to, heard = std::move(heard)]() mutable {
      world_.events.after(2 * costs_.wake, [this, to, heard = std::move(heard)]() mutable {
        serve(to, (1 + kHandOver) * costs_.message, std::move(heard));
      });
    };
    world_.network.send(training_.servers[from].node, training_.servers[to].node, kAnnouncement, arrived);
  });
}

void ServersModel::offer(size_t worker) {
  if (!training_.sync) return apply_async(worker);
  contributors_.push_back(worker);
  if (contributors_.size() >= needed_) commit();
}

void ServersModel::commit() {
  ++version_;
  ++totals_.updates;
  const auto count = static_cast<double>(contributors_.size());
  const size_t last = contributors_.back();
  for (const size_t worker : contributors_) workers_[worker].waited = world_.events.now() - workers_[worker].offered;
  contributors_.clear();
  for (size_t s = 0; s < servers_.size(); ++s) {
    const auto apply = [this, s, count, last] { update(s, count, [this, s, last] { answer_all(s, last); }); };
    if (s == 0) {
      apply();
    } else {
      announce(0, s, apply);
    }
  }
}

/// Each worker's thread in the server sends its answer. The one whose push came last is awake, the others wake up.
void ServersModel::answer_all(size_t server, size_t last) {
  const auto waits = [this, server](size_t w) {
    return servers_[server].inboxes[w].waits && workers_[w].base < version_;
  };
  const bool awake = servers_.size() == 1;  // otherwise the update is made by a thread that serves no worker
  if (awake && waits(last)) answer(server, last);
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (!waits(w)) continue;
    servers_[server].inboxes[w].waits = false;
    world_.events.after(costs_.wake, [this, server, w] { answer(server, w); });
  }
}

void ServersModel::apply_async(size_t worker) {
  for (size_t s = 0; s < servers_.size(); ++s) {
    const auto applied = [this, s, worker] {
      if (s == 0) {
        totals_.staleness += static_cast<double>(version_ - workers_[worker].base);
        ++version_;
        ++totals_.updates;
        advance_clock(worker);
        if (too_far(worker)) {
          workers_[worker].offered = world_.events.now();
          held_.push_back(worker);
          return;
        }
      }
      answer(s, worker);
    };
    if (s == 0) {
      update(s, 1, applied);
    } else {
      announce(0, s, [this, s, applied] { update(s, 1, applied); });
    }
  }
}

void ServersModel::advance_clock(size_t worker) {
  const uint64_t before = workers_[worker].clock++;
  ++clocks_[workers_[worker].clock];
  if (--clocks_[before] > 0) return;
  clocks_.erase(before);
  if (before > slowest() || held_.empty()) return;
  std::vector<size_t> held;
  std::swap(held, held_);
  for (const size_t other : held) {
    if (too_far(other)) {
      held_.push_back(other);
    } else {
      let_go(other);
    }
  }
}

void ServersModel::let_go(size_t worker) {
  workers_[worker].waited = world_.events.now() - workers_[worker].offered;
  answer(0, worker);
}

void ServersModel::update(size_t server, double contributions, Action applied) {
  const double bytes = shard_bytes_[server];
  const double cost = costs_.update + bytes * (costs_.update_byte + contributions * costs_.add);
  servers_[server].updates.emplace_back(cost, std::move(applied));
  if (!servers_[server].updating) next_update(server);
}

void ServersModel::next_update(size_t server) {
  Server& s = servers_[server];
  s.updating = !s.updates.empty();
  if (!s.updating) return;
  auto [cost, applied] = std::move(s.updates.front());
  s.updates.pop_front();
  const double began = world_.events.now();
  serve(server, cost, [this, server, began, applied = std::move(applied)] {
    world_.span("ps", server, "apply", began);
    applied();
    next_update(server);
  });
}

void ServersModel::answer(size_t server, size_t worker) {
  servers_[server].inboxes[worker].waits = false;
  if (server == 0) workers_[worker].read = version_;
  const double bytes = shard_bytes_[server];
  const double cost = costs_.message + bytes * costs_.byte;
  const double began = world_.events.now();
  serve(server, cost, [this, server, worker, bytes, cost, began] {
    world_.span("ps", server, "send", began);
    world_.network.send(training_.servers[server].node, training_.workers[worker].node, bytes + kAnnouncement,
                        [this, worker, cost] {
                          world_.events.after(costs_.wake, [this, worker, cost] {
                            world_.run_messages(worker, cost, [this, worker] { answered(worker); });
                          });
                        });
  });
}

void ServersModel::answered(size_t worker) {
  Worker& w = workers_[worker];
  if (++w.answers < servers_.size()) return;
  const double all = world_.events.now() - w.pushed;
  const double waited = std::clamp(w.waited, 0.0, all);
  if (world_.counting) {
    world_.times[worker].others += waited;
    world_.times[worker].pull += all - waited;
  }
  world_.span("worker", worker, "pull and wait", w.pushed);
  const Action next = std::move(w.next);
  next();
}

class LocalModel final : public ExchangeModel {
 public:
  explicit LocalModel(World& world) : world_(world), parts_{{1, {}, {}}} {}

  [[nodiscard]] const std::vector<StepPart>& parts() const override { return parts_; }
  void begin(size_t /*worker*/) override {}
  void computed(size_t worker, size_t /*part*/, Action next) override {
    const Work& work = world_.training.workers[worker].work;
    const double began = world_.events.now();
    world_.cpu_of_worker(worker).run(work.optimizer, work.threads, [this, worker, began, next = std::move(next)] {
      ++updates_;
      if (world_.counting) world_.times[worker].optimizer += world_.events.now() - began;
      world_.span("worker", worker, "optimizer", began);
      next();
    });
  }
  [[nodiscard]] ExchangeTotals totals() const override { return {updates_, updates_, 0, 0}; }

 private:
  World& world_;
  std::vector<StepPart> parts_;
  double updates_ = 0;
};

}  // namespace

std::unique_ptr<ExchangeModel> make_servers(World& world) { return std::make_unique<ServersModel>(world); }
std::unique_ptr<ExchangeModel> make_local(World& world) { return std::make_unique<LocalModel>(world); }

}  // namespace lockstep::predict
