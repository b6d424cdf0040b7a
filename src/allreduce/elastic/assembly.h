// How members agree on a group: the rules, as plain logic without network, threads or clock (the caller passes
// seconds), so that each can be tested by itself. One Assembly per member; the caller locks, carries what it has to
// send, and tells it what came.
//
// Every member tells all others its MemberStatus at each change. When a group broke, or at the start, members come to
// `forming`; the lowest of them that holds trained state (else the lowest) proposes a group of all who are there and
// reach each other, with a number higher than any it has heard of. A member holds one promise at a time and never one
// of a number that it has left, so nobody is in two groups of one number. When all have accepted, the proposer decides:
// whose state everyone goes on from, and whether it must be sent. A loss, a refusal or a deadline on the way: everyone
// is back at forming, and the next proposal has a higher number.
//
// How many are enough: at the start all expected ones, and after `start_wait` as many as else. With `min_workers`, so
// many. Without, more than half of the group before, not counting those who are certainly dead (their connection closed
// and a new one was refused, or a new process came in their place), or exactly half with the lowest of them: so of a
// network that broke in two only one part goes on. Where min_workers lets both go on and they meet again, the smaller
// one (of equal ones that without the lowest number) dissolves and joins the other.
//
//   assembly.cpp           what comes in
//   assembly_forming.cpp   who is to be in a group: proposals
//   assembly_deciding.cpp  promises, decisions, connecting
//   assembly_running.cpp   losses, newcomers, the end
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/elastic/agreement.h"

namespace lockstep::allreduce::elastic {

struct AssemblyRules {
  int me = 0;
  int members = 1;  ///< that there may be
  uint64_t incarnation = 0;
  int expected = 0;     ///< at the start; 0: all
  int min_workers = 0;  ///< 0: more than half
  int max_workers = 0;  ///< 0: all
  double start_wait = 60;
  double patience = 600;
  std::vector<std::string> names;      ///< by member: "worker:1"
  std::vector<std::string> addresses;  ///< likewise: "127.0.0.1:4001"
};

/// What a member has to send. `to` -1: everyone whom it has a connection with.
struct Send {
  int to = -1;
  Message message;
};
/// A line for people.
struct Say {
  std::string level;
  std::string text;
};
/// The engine's half of a group is wanted: `prepared` takes its address.
struct Preparation {
  uint64_t number = 0;
  int rank = 0;
  int size = 1;
};

class Assembly {
 public:
  explicit Assembly(AssemblyRules rules);

  // What this member wants.
  void form(const Standing& standing, double now);
  /// What `form` waits for: an address to be made, or a decided group to be connected. Each is given once.
  std::optional<Preparation> take_preparation();
  void prepared(uint64_t number, std::string address, double now);
  std::optional<Decision> take_decision();
  /// Why the connecting should be given up; empty: it should not.
  [[nodiscard]] std::string why_give_up() const;
  void connected(double now);
  void not_connected(const std::string& why, double now);
  /// Why `form` has failed for good; empty: it has not.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Training was over when it wanted to take part.
  [[nodiscard]] bool over() const { return over_; }
  /// Wants to be in no group any more; `interrupted`: because a user has ended it, and so all.
  void withdraw(bool interrupted = false);
  void close(double now, bool interrupted = false);
  void end(double now);
  /// There are signs that training has ended at that step: it has, where nobody knows better.
  void found_ending(uint64_t step, bool interrupted, double now);

  // What comes from others.
  void arrived(int peer, const MemberStatus& status, double now);
  void lost(int peer, const std::string& why, double now);
  /// A lost one is certainly dead.
  void certain(int peer, double now);
  /// A process in its place is starting: it should hear of the end.
  void expect(int peer, double now) { at(peer).asked_at = now; }
  /// Why there is no connection, for people.
  void absent(int peer, const std::string& why);
  void take(int peer, const Message& message, double now);
  void tick(double now);

  // How things are.
  [[nodiscard]] MemberStatus status() const;
  [[nodiscard]] MemberPhase phase() const { return phase_; }
  [[nodiscard]] const Group& group() const { return group_; }
  /// Why the group that it runs in is broken; empty: it is not.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  /// As rank 0: someone waits to get in who can.
  [[nodiscard]] bool wants_regroup() const { return wants_regroup_; }
  /// In its group, while running or closing. -1: nobody that it knows of.
  [[nodiscard]] int leader(double now) const;
  [[nodiscard]] bool knows_end() const { return knows_end_; }
  /// Whether everyone has heard of the end who can be expected to.
  [[nodiscard]] bool may_go(double now) const;
  /// Whether a user has ended this member or another one of its latest group.
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  /// Whether all others of that group who are here know it, or have come to its end.
  [[nodiscard]] bool parted() const;
  /// Whether every other member of that group is known to be here or dead.
  [[nodiscard]] bool accounted() const;
  /// Whether this is the first of that group who is here and has its state, and nobody has gone on without it.
  [[nodiscard]] bool foremost() const;
  /// "group 4 of worker:0, worker:2 goes on from step 120, without worker:1"
  [[nodiscard]] const std::string& announced() const { return announced_; }

  // What is to be done; taken once.
  std::vector<Send> take_sends() { return std::exchange(sends_, {}); }
  std::vector<Say> take_says() { return std::exchange(says_, {}); }

 private:
  struct Peer {
    bool here = false;
    bool came = false;     ///< was here at some time
    bool certain = false;  ///< is dead
    double lost_at = 0;
    double asked_at = -1;     ///< its process asked for the run's name; -1: never
    double left_since = -1;   ///< of the group; -1: it has not
    double barred_until = 0;  ///< groups with it did not get connected
    int bars = 0;
    std::string why = "has not come";
    MemberStatus status;
  };
  struct Promise {
    Proposal proposal;
    int proposer = 0;
    double since = 0;
    bool asked = false;  ///< for the address
  };
  struct Outstanding {
    Proposal proposal;
    double since = 0;
    std::map<int, Acceptance> accepted;
  };

  // assembly.cpp
  void take_status(int peer, const MemberStatus& status, double now);
  void react(double now);
  void send(int to, Message message);
  void tell();
  void say(std::string level, std::string text) { says_.push_back({std::move(level), std::move(text)}); }
  void note_seen(uint64_t number);
  [[nodiscard]] Peer& at(int member) { return peers_[static_cast<size_t>(member)]; }
  [[nodiscard]] const Peer& at(int member) const { return peers_[static_cast<size_t>(member)]; }
  [[nodiscard]] const std::string& short_name(int member) const { return rules_.names[static_cast<size_t>(member)]; }
  /// With its address.
  [[nodiscard]] std::string name(int member) const;
  [[nodiscard]] std::string names_of(const std::vector<int>& members) const;
  [[nodiscard]] bool alive(const Seat& seat) const;
  [[nodiscard]] bool certainly_dead(const Seat& seat) const;
  [[nodiscard]] MemberStatus status_of(int member) const;

  // assembly_forming.cpp, assembly_deciding.cpp
  void consider(double now);
  [[nodiscard]] bool must_wait_for_others(double now);
  [[nodiscard]] std::vector<int> candidates(double now) const;
  [[nodiscard]] bool reach_each_other(int a, int b) const;
  /// Of those, in order of preference, who reach each other, as many as there may be.
  [[nodiscard]] std::vector<int> choose(std::vector<int> from) const;
  [[nodiscard]] static bool in_group(const Group& group, const Seat& seat);
  [[nodiscard]] bool enough(const std::vector<int>& chosen, double now);
  [[nodiscard]] bool enough_to_start(const std::vector<int>& chosen, double now) const;
  [[nodiscard]] bool enough_to_go_on(const Group& before, const std::vector<int>& chosen) const;
  void await_more(const std::vector<int>& chosen);
  void propose(const std::vector<int>& chosen, double now);
  void take_proposal(int peer, const Proposal& proposal, double now);
  void take_acceptance(int peer, const Acceptance& acceptance, double now);
  void take_refusal(int peer, const Refusal& refusal, double now);
  void take_decision_of(int peer, const Decision& decision, double now);
  void decide(double now);
  [[nodiscard]] Decision make_decision() const;
  [[nodiscard]] bool fits(const std::vector<Seat>& seats) const;
  void review_promise(double now);
  void drop_promise();
  /// Whoever came into a group that did not get connected stays outside for a while: the others go on.
  void bar_newcomers(const Group& group, double now);
  void complain(double now);
  void fail(std::string why, bool over);

  // assembly_running.cpp
  /// Whether a member has heard of the end, and that of the newest group: one that was left behind may close its own.
  [[nodiscard]] bool ends_all(const MemberStatus& status) const;
  void watch_group(double now);
  void break_group(const std::string& why);
  /// Whether another one of the latest group is in a later one, which has newer state than this member.
  [[nodiscard]] bool left_behind() const;
  /// Whether a member holds what the latest group went on from.
  [[nodiscard]] bool has_state(int member) const;
  [[nodiscard]] bool dissolves_for(const Group& other) const;
  void look_for_newcomers(double now);
  void announce(const Group& before);

  AssemblyRules rules_;
  std::vector<Peer> peers_;  ///< by member; that of `me` is unused
  MemberPhase phase_ = MemberPhase::starting;
  Standing standing_;
  uint64_t seen_ = 0;
  uint64_t left_ = 0;
  bool knows_end_ = false;
  bool interrupted_ = false;
  Group group_;
  bool dissolved_ = false;  ///< its group made way for another: its state counts no more
  std::string broken_;
  bool wants_regroup_ = false;
  std::string announced_;

  // Forming.
  double start_ = -1;
  double forming_since_ = 0;
  double arrival_ = 0;   ///< the latest
  double next_try_ = 0;  ///< before that it proposes nothing
  int failures_ = 0;     ///< to connect, in a row
  std::string awaited_;
  double complained_ = 0;  ///< seconds of waiting at the latest line about it
  std::string failure_;
  bool over_ = false;
  std::optional<Promise> promise_;
  std::optional<Outstanding> outstanding_;
  std::optional<Decision> coming_;
  bool coming_taken_ = false;

  std::vector<Send> sends_;
  std::vector<Say> says_;
};

}  // namespace lockstep::allreduce::elastic
