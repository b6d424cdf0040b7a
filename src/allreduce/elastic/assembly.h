// The rules by which members agree on a group, as plain logic without network, threads or clock (the caller passes
// seconds), so that each rule can be tested by itself. Each member has one Assembly. The caller locks it, sends its
// messages, and passes it those received.
//
// Every member sends all others its MemberStatus at each change. At the start, or when a group broke, members are
// `forming`. The lowest member with trained state (else the lowest) proposes a group of all members that are present
// and reach each other, with a number higher than any it knows. A member holds one promise at a time, and never one for
// a number that it has left, so no member is in two groups of one number. When all have accepted, the proposer decides
// whose state to go on from, and whether it must be sent. After a loss, a refusal or a deadline all members are forming
// again, and the next proposal has a higher number.
//
// At most one group trains. A group makes a step only with all its members, so it makes none once one of them is in
// another group. Each rule below makes every group share a member with the one before it:
//
//   majority   without an authority: more than half of all configured members, or half of them with member 0. The dead
//              are never subtracted, so members that restart without memory follow the same rule.
//   register   an authority holds the latest group. A group starts when the proposer has put it in the place of the
//              latest one by compare-and-swap, and has a member of that one. So a single survivor may go on. A group
//              that runs does not need the authority until its members must change.
//   split      with `allow_split` any part of a broken network may go on. When two groups meet, both form one group.
//
// The first two count on one process per member: a process starts only after the earlier one of its name is dead.
//
// At the start all expected members are awaited for `start_wait`. The members of a group go on from the state with the
// most steps; of equal ones, that of the latest group, then that of more members, then that of the lower member.
//
//   assembly.cpp           messages and events received
//   assembly_forming.cpp   choosing the members of a group: proposals
//   assembly_rule.cpp      who may train: enough members, the register
//   assembly_deciding.cpp  promises, decisions, connecting
//   assembly_running.cpp   losses, new members, the end
//   assembly_fence.cpp     whether a member may still write for its group
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/elastic/agreement.h"
#include "authority/register.h"

namespace lockstep::allreduce::elastic {

struct AssemblyRules {
  int me = 0;
  int members = 1;  ///< possible members
  uint64_t incarnation = 0;
  int expected = 0;     ///< members at the start; 0: all
  int min_workers = 0;  ///< fewest members of a group, besides the rule
  int max_workers = 0;  ///< 0: all
  bool allow_split = false;
  bool relayed = false;        ///< members pass on each other's messages, so all that are here reach each other
  std::string authority = {};  ///< name of the register's holder: "etcd at 10.0.0.1:2379"; empty: the majority rule
  uint64_t latest = 0;         ///< number of the latest group in the files that this member has read
  double start_wait = 60;
  double patience = 600;
  std::vector<std::string> names;      ///< by member: "worker:1"
  std::vector<std::string> addresses;  ///< by member: "127.0.0.1:4001"
};

/// A message to send. `to` -1: all connected members.
struct Send {
  int to = -1;
  Message message;
};
/// A line for the log.
struct LogLine {
  std::string level;
  std::string text;
};
/// Asks for the engine's half of a group; answer with `prepared` and its address.
struct Preparation {
  uint64_t number = 0;
  int rank = 0;
  int size = 1;
};

/// A question to the authority: a swap, or a read if there is none.
struct Question {
  std::optional<authority::Swap> swap;
};

class Assembly {
 public:
  explicit Assembly(AssemblyRules rules);

  // Requests of this member.
  void form(const Standing& standing, double now);
  /// Work that `form` waits for: an address to make, or a decided group to connect. Each is returned once.
  std::optional<Preparation> take_preparation();
  void prepared(uint64_t number, std::string address, double now);
  std::optional<Decision> take_decision();
  /// Returns why connecting should be given up; empty: go on.
  [[nodiscard]] std::string why_give_up() const;
  void connected(double now);
  /// The state that the group goes on from is here. Until then this member counts as one without it.
  void received();
  void not_connected(const std::string& why, double now);
  /// A question to the authority, returned once. The next one comes after `answered`.
  std::optional<Question> take_question();
  void answered(const authority::Answer& answer, double now);
  /// True if the thread that forms has something to do, or may stop waiting.
  [[nodiscard]] bool has_work() const {
    const bool preparation = promise_ && !promise_->asked;
    return preparation || (decision_ && !decision_taken_) || !failure_.empty() || interrupted_ || knows_end_ ||
           phase_ == MemberPhase::closing || phase_ == MemberPhase::ended;
  }
  /// Returns why `form` failed and cannot succeed any more; empty: it has not failed.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// True if training was over when this member wanted to join.
  [[nodiscard]] bool over() const { return over_; }
  /// Leaves and does not return. `interrupted`: a user interrupted this member, so all members stop.
  void withdraw(bool interrupted = false);
  void close(double now, bool interrupted = false);
  void end(double now);
  /// Signs were found that training ended at that step. They count unless a member shows that training continues.
  void found_ending(uint64_t step, bool interrupted, double now);

  // The fence: before a file of the group is renamed into place.
  void begin_check(double now);
  /// Returns why the file must not be kept: another group may have taken this one's place. Empty: none has, as far as
  /// this member or the authority knows. Nothing: not known yet; ask again.
  [[nodiscard]] std::optional<std::string> checked(double now) const;

  // Events from other members.
  void peer_connected(int peer, const MemberStatus& status, double now);
  void peer_lost(int peer, const std::string& why, double now);
  /// A lost member is confirmed dead.
  void peer_confirmed_dead(int peer, double now);
  /// A process of that member is starting; it must be told if training ends.
  void peer_starting(int peer, double now) { at(peer).asked_at = now; }
  /// Records why there is no connection, for messages.
  void peer_unreachable(int peer, const std::string& why);
  void receive(int peer, const Message& message, double now);
  void tick(double now);

  // State.
  [[nodiscard]] MemberStatus status() const;
  [[nodiscard]] MemberPhase phase() const { return phase_; }
  [[nodiscard]] const Group& group() const { return group_; }
  /// Returns why its running group is broken; empty: it is not.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  /// Returns what `form` waits for; empty while it does not wait for anybody.
  [[nodiscard]] const std::string& awaited() const { return awaited_; }
  /// True on rank 0 if a member waits to join and can.
  [[nodiscard]] bool wants_regroup() const { return wants_regroup_; }
  /// Returns the leader of its group, while running or closing; -1: none known.
  [[nodiscard]] int leader(double now) const;
  [[nodiscard]] bool knows_end() const { return knows_end_; }
  /// True if every member that must be told of the end knows it.
  [[nodiscard]] bool may_leave(double now) const;
  /// True if a user interrupted this member or another one of its latest group.
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  /// True if all other present members of that group know of the interrupt, or have ended training.
  [[nodiscard]] bool all_informed() const;
  /// True if every other member of that group is present or confirmed dead.
  [[nodiscard]] bool all_accounted_for() const;
  /// True if this is the first member of that group that is present and has its state, and no other continued without
  /// it.
  [[nodiscard]] bool first_survivor() const;
  /// "group 4 of worker:0, worker:2 continues from step 120, without worker:1"
  [[nodiscard]] const std::string& announced() const { return announced_; }

  // Pending output; each item is returned once.
  std::vector<Send> take_sends() { return std::exchange(sends_, {}); }
  std::vector<LogLine> take_log_lines() { return std::exchange(log_lines_, {}); }

 private:
  struct Peer {
    bool here = false;
    bool was_here = false;  ///< was present at some time
    bool dead = false;      ///< confirmed dead
    double lost_at = 0;
    double asked_at = -1;     ///< time at which its process asked for the run's name; -1: never
    double left_since = -1;   ///< time at which it left the group; -1: it has not
    double barred_until = 0;  ///< end of its exclusion after groups with it failed to connect
    int bars = 0;
    std::string why = "has not come";
    MemberStatus status;
  };
  struct Promise {
    Proposal proposal;
    int proposer = 0;
    double since = 0;
    bool asked = false;  ///< the engine was asked for the address
  };
  struct Outstanding {
    Proposal proposal;
    double since = 0;
    std::map<int, Acceptance> accepted;
    std::optional<Decision> decision = {};  ///< it waits for the authority
  };
  /// The authority's register, as of its latest answer.
  struct Known {
    Group group;
    bool vacant = false;     ///< no process of that group lives
    double asked_at = -1;    ///< time of its question
    double read_at = -1;     ///< time of the answer; -1: none yet
    std::string unanswered;  ///< why the latest question was not answered; empty: it was
    double next_try = 0;     ///< no question before this time
  };

  // assembly.cpp
  void take_status(int peer, const MemberStatus& status, double now);
  void react(double now);
  void send(int to, Message message);
  void broadcast_status();
  void log(std::string level, std::string text) { log_lines_.push_back({std::move(level), std::move(text)}); }
  void report_loss(int member, const std::string& line);
  void say_losses();
  /// True if no earlier member of the latest group is present.
  [[nodiscard]] bool leads_survivors() const;
  void note_seen(uint64_t number);
  [[nodiscard]] Peer& at(int member) { return peers_[static_cast<size_t>(member)]; }
  [[nodiscard]] const Peer& at(int member) const { return peers_[static_cast<size_t>(member)]; }
  [[nodiscard]] const std::string& short_name(int member) const { return rules_.names[static_cast<size_t>(member)]; }
  /// Returns the name and address: "worker:1 at 127.0.0.1:4001".
  [[nodiscard]] std::string name(int member) const;
  [[nodiscard]] std::string names_of(const std::vector<int>& members) const;
  [[nodiscard]] bool alive(const Seat& seat) const;
  [[nodiscard]] bool confirmed_dead(const Seat& seat) const;
  [[nodiscard]] MemberStatus status_of(int member) const;

  // assembly_forming.cpp, assembly_deciding.cpp
  void propose_if_ready(double now);
  [[nodiscard]] bool must_wait_for_others(double now);
  /// True if it is this member's turn to propose; else `awaited_` says who may.
  [[nodiscard]] bool may_propose(double now);
  [[nodiscard]] std::vector<int> candidates(double now) const;
  [[nodiscard]] bool reach_each_other(int a, int b) const;
  /// Chooses members that all reach each other, up to max_workers: this one, then those with the most steps. With
  /// `by_reach` those that reach the most others come first.
  [[nodiscard]] std::vector<int> choose(std::vector<int> from, bool by_reach = false) const;
  [[nodiscard]] std::vector<int> take_reachable(const std::vector<int>& from) const;
  [[nodiscard]] static bool in_group(const Group& group, const Seat& seat);
  void propose(const std::vector<int>& chosen, double now);
  void take_proposal(int peer, const Proposal& proposal, double now);
  void take_acceptance(int peer, const Acceptance& acceptance, double now);
  void take_refusal(int peer, const Refusal& refusal, double now);
  void take_decision_of(int peer, const Decision& decision, double now);
  void decide(double now);
  /// Tells all members of the decided group.
  void start_group(double now);
  [[nodiscard]] int best_source() const;
  [[nodiscard]] Decision make_decision() const;
  [[nodiscard]] bool fits(const Seats& seats) const;
  void review_promise(double now);
  void drop_promise();
  /// Excludes members that were new in a group that failed to connect, for a while: the others go on.
  void bar_newcomers(const Group& group, double now);
  void warn_or_give_up(double now);
  void fail(std::string why, bool over);

  // assembly_rule.cpp
  /// True if these have a state, and at the start nobody is awaited any more.
  [[nodiscard]] bool complete(const std::vector<int>& chosen, double now) const;
  /// True if these may form the next group now.
  [[nodiscard]] bool enough(const std::vector<int>& chosen, double now) const;
  /// True if no other group can train beside one of these.
  [[nodiscard]] bool may_train(const std::vector<int>& chosen) const;
  [[nodiscard]] bool is_majority(const std::vector<int>& chosen) const;
  void await_more(const std::vector<int>& chosen);
  /// "more than half of the 3 members are needed"
  [[nodiscard]] std::string needed() const;
  /// True if the authority's latest group lets these follow it.
  [[nodiscard]] bool follows(const std::vector<int>& chosen) const;
  /// True if more members of the register's group may live elsewhere than are among these.
  [[nodiscard]] bool may_be_outnumbered(const std::vector<int>& chosen) const;
  /// True if the register's group is known as of now; else asks for it.
  bool knows_register(double now);
  /// True if the authority answers, so that the running group may break up for a new one.
  bool may_regroup(bool wanted, double now);
  void ask(std::optional<authority::Swap> swap, double now);
  /// Asks the authority to let the decided group start, again until it answers.
  void ask_to_start(double now);
  [[nodiscard]] bool forgot(const authority::Answer& answer) const;
  /// True if this member joined a later group while the answer was on its way.
  [[nodiscard]] bool overtaken(const authority::Answer& answer) const;
  [[nodiscard]] authority::Answer forgetful(const authority::Answer& answer) const;
  void take_swap(const Group& next, const authority::Answer& answer, double now);
  /// Returns why its group is not the latest, as far as members tell; empty: it may be.
  [[nodiscard]] std::string why_replaced() const;

  // assembly_running.cpp
  /// True if a member knows of the end of the newest group. A group that was left behind may end on its own.
  [[nodiscard]] bool ends_all(const MemberStatus& status) const;
  void watch_group(double now);
  void break_group(const std::string& why);
  /// True if another member of the latest group is in a later one, which has newer state than this member.
  [[nodiscard]] bool left_behind() const;
  /// True if that member is in a later group, which has newer state than this member.
  [[nodiscard]] bool went_on(const MemberStatus& status) const;
  /// True if that member's later group was formed without this one, and it ends with fewer steps than this one has.
  [[nodiscard]] bool ends_behind(const MemberStatus& status) const;
  /// True if a member holds the state that the latest group went on from.
  [[nodiscard]] bool has_state(int member) const;
  /// True if that member trains in another group, and this one reaches all of that group.
  [[nodiscard]] bool trains_apart(int member) const;
  void look_for_newcomers(double now);
  void announce(const Group& before);

  AssemblyRules rules_;
  std::vector<Peer> peers_;  ///< by member; the entry of `me` is unused
  MemberPhase phase_ = MemberPhase::starting;
  Standing standing_;
  uint64_t seen_ = 0;
  uint64_t left_ = 0;
  bool knows_end_ = false;
  bool interrupted_ = false;
  Group group_;
  std::string broken_;
  bool wants_regroup_ = false;
  std::string announced_;

  // State while forming.
  double start_ = -1;
  double forming_since_ = 0;
  double arrival_ = 0;   ///< time of the latest arrival
  double next_try_ = 0;  ///< no proposal before this time
  double yielded_ = 0;   ///< time at which it left the next proposal to those before it
  int failures_ = 0;     ///< failures to connect, in a row
  std::string awaited_;
  double warned_ = 0;  ///< seconds of waiting at the latest warning
  std::string failure_;
  bool over_ = false;
  std::optional<Promise> promise_;
  std::optional<Outstanding> outstanding_;
  std::optional<Decision> decision_;
  bool decision_taken_ = false;

  // With an authority.
  Known register_ = {};
  std::optional<Question> question_;  ///< the question under way
  bool question_taken_ = false;
  double asked_at_ = -1;     ///< time of the latest question
  uint64_t asked_in_ = 0;    ///< number of this member's group at that time
  double check_since_ = -1;  ///< start of the latest check of the fence; -1: none
  double ticked_ = -1;       ///< time of the latest tick

  std::map<int, std::string> unsaid_;  ///< by member: its latest loss, which another member reports
  std::vector<Send> sends_;
  std::vector<LogLine> log_lines_;
};

}  // namespace lockstep::allreduce::elastic
