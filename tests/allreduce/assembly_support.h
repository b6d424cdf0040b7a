// Members of a cluster as plain logic: one Assembly each, messages in order between any two, connections that break and
// return, processes that die, and a clock that the test moves. Each member's engine connects when all members of a
// decided group have begun to connect.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/elastic/assembly.h"
#include "authority/cell.h"

namespace lockstep::allreduce::elastic::testing {

class World {
 public:
  struct Member {
    std::unique_ptr<Assembly> assembly;  ///< null: dead
    uint64_t incarnation = 0;
    Standing standing;
    std::optional<Decision> connecting;
    std::optional<Question> question;  ///< it waits for the authority
    uint64_t connecting_since = 0;
    std::vector<LogLine> log_lines;
    uint64_t forms = 0;
  };

  explicit World(int count, AssemblyRules rules = {}) : rules_(rules), members_(static_cast<size_t>(count)) {
    rules_.members = count;
    for (int i = 0; i < count; ++i) {
      rules_.names.push_back("worker:" + std::to_string(i));
      rules_.addresses.push_back("h:" + std::to_string(i));
    }
  }

  Member& at(int member) { return members_[static_cast<size_t>(member)]; }
  Assembly& assembly(int member) { return *at(member).assembly; }
  [[nodiscard]] int count() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] double now() const { return now_; }

  /// Starts a process and connects it with all that it can reach.
  void start(int member) {
    AssemblyRules rules = rules_;
    rules.me = member;
    rules.incarnation = at(member).incarnation = ++incarnations_;
    at(member).assembly = std::make_unique<Assembly>(rules);
    at(member).standing = {};
    at(member).connecting.reset();
    at(member).question.reset();
    for (int other = 0; other < count(); ++other) join(member, other);
  }
  void start_all() {
    for (int i = 0; i < count(); ++i) start(i);
  }
  void form(int member) {
    ++at(member).forms;
    assembly(member).form(at(member).standing, now_);
    collect(member);
  }
  void form_all() {
    for (int i = 0; i < count(); ++i) form(i);
  }

  /// Acts like kill -9: others see the connection close; `confirmed`: and that its address refuses connections.
  void kill(int member, bool confirmed = true) {
    at(member).assembly.reset();
    at(member).connecting.reset();
    for (int other = 0; other < count(); ++other) {
      sever(member, other, "connection closed");
      if (confirmed && at(other).assembly) {
        assembly(other).peer_confirmed_dead(member, now_);
        collect(other);
      }
    }
  }
  /// Breaks the connection between two, on both sides; messages in flight are lost.
  void sever(int a, int b, const std::string& why = "no heartbeat for 5.0 s") {
    if (connected_.erase(std::minmax(a, b)) == 0) return;
    wires_[{a, b}].clear();
    wires_[{b, a}].clear();
    for (const auto& [me, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (!at(me).assembly) continue;
      assembly(me).peer_lost(other, why, now_);
      collect(me);
    }
  }
  /// Connects two members unless the network between them is cut.
  void join(int a, int b) {
    if (a == b || !at(a).assembly || !at(b).assembly || cut_.contains(std::minmax(a, b))) return;
    if (!connected_.insert(std::minmax(a, b)).second) return;
    const MemberStatus of_a = assembly(a).status();
    const MemberStatus of_b = assembly(b).status();
    assembly(a).peer_connected(b, of_b, now_);
    collect(a);
    assembly(b).peer_connected(a, of_a, now_);
    collect(b);
  }
  void cut(int a, int b) {
    cut_.insert(std::minmax(a, b));
    sever(a, b);
  }
  void heal(int a, int b) {
    cut_.erase(std::minmax(a, b));
    join(a, b);
  }

  /// Delivers one message of some pair; returns false if there is none.
  bool deliver(const std::function<size_t(size_t)>& pick) {
    std::vector<std::pair<int, int>> full;
    for (const auto& [pair, queue] : wires_) {
      if (!queue.empty()) full.push_back(pair);
    }
    if (full.empty()) return false;
    const auto pair = full[pick(full.size())];
    const Message message = wires_[pair].front();
    wires_[pair].pop_front();
    if (at(pair.second).assembly) {
      assembly(pair.second).receive(pair.first, message, now_);
      collect(pair.second);
    }
    return true;
  }
  /// Does everything that needs no more time.
  void settle() {
    for (int i = 0; i < 100000; ++i) {
      const bool moved = deliver([](size_t) { return 0; });
      const bool worked = work_all();
      if (!moved && !worked) return;
    }
    FAIL() << "it does not settle";
  }
  void pass(double seconds) {
    const double until = now_ + seconds;
    while (now_ < until) {
      now_ = std::min(until, now_ + 0.25);
      for (int i = 0; i < count(); ++i) {
        if (!at(i).assembly) continue;
        assembly(i).tick(now_);
        collect(i);
      }
      settle();
    }
  }

  void pass_without_settling(double seconds) {
    now_ += seconds;
    for (int i = 0; i < count(); ++i) {
      if (!at(i).assembly) continue;
      assembly(i).tick(now_);
      collect(i);
    }
  }

  /// Does the training thread's work inside form(). Returns true if there was some.
  bool work(int member) {
    if (!at(member).assembly) return false;
    Member& m = at(member);
    if (m.question) {
      const Question asked = *std::exchange(m.question, std::nullopt);
      m.assembly->answered(answer(asked), now_);
      collect(member);
      return true;
    }
    if (const auto wanted = m.assembly->take_preparation()) {
      m.assembly->prepared(wanted->number, "address of " + std::to_string(member), now_);
      collect(member);
      return true;
    }
    if (const auto decided = m.assembly->take_decision()) {
      m.connecting = decided;
      return true;
    }
    if (!m.connecting) return false;
    if (!m.assembly->why_give_up().empty()) {
      m.connecting.reset();
      m.assembly->not_connected(m.assembly->why_give_up(), now_);
      collect(member);
      return true;
    }
    return connect(member);
  }
  bool work_all() {
    bool any = false;
    for (int i = 0; i < count(); ++i) any = work(i) || any;
    return any;
  }

  /// by group id: the decision that each connected member received
  std::map<uint64_t, std::map<int, Decision>> formed;
  /// Makes a step of the whole group; calls form if a new member waits.
  void step(int member) {
    at(member).standing.live = true;
    ++at(member).standing.step;
  }
  std::vector<int> members_of(int member) {
    std::vector<int> found;
    for (const Seat& seat : assembly(member).group().seats) found.push_back(seat.member);
    return found;
  }
  bool running(int member) {
    return at(member).assembly && assembly(member).phase() == MemberPhase::running && assembly(member).broken().empty();
  }
  std::function<void(int)> on_collect;
  std::set<int> unconnectable;  ///< the engine fails for groups with these members
  std::set<int> awaits_state;   ///< members to which the state of a group is on its way

  // The authority, if the rules name one.
  authority::Cell cell;
  bool away = false;         ///< it answers nothing
  bool loses = false;        ///< it does what it is asked, and its answers are lost
  std::string refuses = {};  ///< why it refuses all questions

 private:
  bool connect(int member) {
    Member& m = at(member);
    // The engine needs all members of the group to be connecting or connected.
    for (const Seat& seat : m.connecting->group.seats) {
      const Member& other = at(seat.member);
      const bool same = other.assembly && other.incarnation == seat.incarnation;
      const bool begun = same && other.connecting && other.connecting->group.id == m.connecting->group.id;
      const bool done = same && other.assembly->group().id == m.connecting->group.id;
      if (!begun && !done) return false;
    }
    const Decision decision = *m.connecting;
    m.connecting.reset();
    for (const Seat& seat : decision.group.seats) {
      if (!unconnectable.contains(seat.member)) continue;
      m.assembly->not_connected("no connection within 30 s", now_);
      collect(member);
      return true;
    }
    formed[decision.group.id][member] = decision;
    m.standing = decision.standing;
    m.standing.live = m.standing.whole = true;
    m.assembly->connected(now_);
    if (!awaits_state.contains(member)) m.assembly->received();
    collect(member);
    return true;
  }

  authority::Answer answer(const Question& question) {
    const auto failed = [this](const std::string& why) { return base::Failure{.text = rules_.authority + ": " + why}; };
    if (!refuses.empty()) return {authority::Outcome::refused, {}, failed(refuses)};
    if (away) return {authority::Outcome::unanswered, {}, failed("no answer")};
    authority::Answer given{authority::Outcome::present, cell.group(), {}};
    if (question.swap) given = cell.swap(question.swap->expected, question.swap->next);
    if (loses) return {authority::Outcome::unanswered, {}, failed("the connection closed")};
    return given;
  }

  void collect(int member) {
    Member& m = at(member);
    if (auto question = m.assembly->take_question()) m.question = std::move(question);
    for (LogLine& line : m.assembly->take_log_lines()) m.log_lines.push_back(std::move(line));
    for (Send& send : m.assembly->take_sends()) {
      for (int to = 0; to < count(); ++to) {
        if (send.to >= 0 && send.to != to) continue;
        if (connected_.contains(std::minmax(member, to))) wires_[{member, to}].push_back(send.message);
      }
    }
    if (on_collect) on_collect(member);
  }

  AssemblyRules rules_;
  std::vector<Member> members_;
  std::set<std::pair<int, int>> connected_;
  std::set<std::pair<int, int>> cut_;
  std::map<std::pair<int, int>, std::deque<Message>> wires_;
  double now_ = 1000;
  uint64_t incarnations_ = 0;
};

inline AssemblyRules rules(int min_workers = 0, int max_workers = 0) {
  AssemblyRules rules;
  rules.min_workers = min_workers;
  rules.max_workers = max_workers;
  return rules;
}

/// Any part of a broken network may go on.
inline AssemblyRules split() {
  AssemblyRules rules;
  rules.allow_split = true;
  return rules;
}

/// An authority decides.
inline AssemblyRules registered() {
  AssemblyRules rules;
  rules.authority = "the register";
  return rules;
}

/// A cluster whose members run in one group, after some steps.
inline World running(int count, const AssemblyRules& r = {}) {
  World world(count, r);
  world.start_all();
  world.form_all();
  world.settle();
  for (int i = 0; i < count; ++i) {
    if (world.running(i)) world.step(i);
  }
  return world;
}

inline void form_broken(World& world) {
  for (int i = 0; i < world.count(); ++i) {
    if (world.at(i).assembly && !world.assembly(i).broken().empty()) world.form(i);
  }
  world.settle();
}

}  // namespace lockstep::allreduce::elastic::testing
