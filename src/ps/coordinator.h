// The coordinator of a job, part of ps:0. It knows the members, the data that is assigned and applied, whose gradients
// make the next version, and when training ends. Pure logic over plain values: no network, no threads, no clock (the
// caller passes seconds), so every rule can be tested by itself. The caller locks.
//
// Members are the workers by number (the chief is 0). Each is absent (expected, not yet joined), active, or gone; and
// it may have finished its share. A Plan (data/plan.h) shares the remaining data among the expected and active members.
// Whenever this set changes, a new plan is made of the data not yet applied: at once in asynchronous mode, at the next
// version in synchronous mode. In asynchronous mode, members keep the batches that they are computing when the plan
// changes (`reserved`). A push counts only if its batches are exactly those due from its sender.
//
//    coordinator.cpp         members, versions, the end
//    coordinator_data.cpp    plans: assigned and remaining data
//    coordinator_ledger.cpp  saving to the ledger, and resuming from it
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/plan.h"
#include "exchange/exchange.h"
#include "ps/contributions.h"

namespace lockstep::wire {
class Ledger;
class MemberState;
}  // namespace lockstep::wire

namespace lockstep::ps {

struct CoordinatorOptions {
  int members = 1;
  int servers = 1;
  bool sync = true;
  int64_t max_staleness = -1;  ///< async: largest lead over the slowest member, in clocks; -1: unbounded
  int64_t aggregate = 0;       ///< sync: gradients per update; 0: one from each member
  bool mean = true;            ///< updates use the mean of the gradients; otherwise their sum
  bool mean_loss = true;       ///< the loss is a mean over the batch, so gradients count by examples
  int64_t batch = 1;           ///< batch size per member
  int64_t accumulate = 1;      ///< least number of batches per push
  int64_t examples = 1;        ///< examples per pass
  int64_t passes = 0;          ///< passes over the data; 0: unlimited
  bool sharded = true;         ///< false: every member sees all data, and nothing is reassigned
  uint64_t limit_steps = 0;    ///< last step; 0: unlimited
  double start_wait = 60;      ///< seconds that expected members have to join
  bool record = false;         ///< keep the parts of each version, for contributions()
};

/// A push, as described by its last frame.
struct Push {
  int member = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;  ///< increases with each push of one incarnation
  uint64_t base = 0;      ///< version it was computed on
  uint64_t plan = 0;      ///< id of the plan its data belongs to
  int64_t rounds = 1;     ///< rounds of that plan
  exchange::BatchReport report;
};

/// A push by name; each process of a member counts its own.
struct PushName {
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  bool operator==(const PushName&) const = default;
};

enum class Verdict : uint8_t {
  accepted,  ///< it waits for a decision
  repeated,  ///< already applied; only answer
  dropped,   ///< stale: answer with the newest parameters
  rejoin,    ///< the sender is no longer a member
  stopped
};

/// The gradients that make a version, in the order of summation.
struct Contributor {
  int member = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  float weight = 1;       ///< weight relative to the first gradient
  bool replaced = false;  ///< another process has taken its place: nobody can send the push again
};
inline PushName name_of(const Contributor& contributor) { return {contributor.incarnation, contributor.sequence}; }
struct Decision {
  uint64_t version = 0;  ///< version this decision makes
  std::vector<Contributor> contributors;
  float mean_scale = 1;  ///< factor applied to the sum
};

/// The record of a member, for reports.
struct WorkerHistory {
  uint64_t iterations = 0;  ///< batches computed and applied
  uint64_t examples = 0;
  uint64_t updates = 0;
  uint64_t dropped = 0;
  uint64_t joins = 0;               ///< number of times that a process of this member joined
  double finished_seconds = 0;      ///< when it finished; 0: not yet
  std::vector<uint64_t> staleness;  ///< histogram; the last bin holds all larger values
  uint64_t staleness_sum = 0;
  uint64_t staleness_max = 0;
  double wait_seconds = 0;
  double busy_seconds = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< result of its own final evaluation
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

WorkerHistory record_of(const wire::MemberState& saved);

class Coordinator {
 public:
  enum class Presence : uint8_t { absent, active, gone };

  /// Starts a new job at `version` with the given remaining data.
  Coordinator(const CoordinatorOptions& options, uint64_t version, data::Remainder data, double now);
  /// Resumes the job of a ledger: all members are expected back, with a new plan of the data not yet applied.
  Coordinator(const CoordinatorOptions& options, const wire::Ledger& ledger, double now);

  [[nodiscard]] const CoordinatorOptions& options() const { return options_; }
  [[nodiscard]] uint64_t version() const { return version_; }

  // Membership.
  /// Asks to join. Returns true if the member is in from now on, false if it joins with the next version (then see
  /// `takes_part`). May be asked again: a member that has not begun its share stays in (sync).
  bool join(int member, uint64_t incarnation);
  [[nodiscard]] bool takes_part(int member, uint64_t incarnation) const;
  /// Removes a member whose process died, was cut off or is silent. Returns false if it was not a member.
  bool depart(int member, uint64_t incarnation);
  /// Marks a member as finished: it has no data left, or it met a rule that ends training for all. `rounds` counts its
  /// rounds without data since its last push.
  void finish(int member, uint64_t incarnation, train::StopReason reason, int64_t rounds, double now);
  /// Returns true if a finished member is needed for work that others left.
  [[nodiscard]] bool needed_again(int member) const;
  /// Removes expected members that did not join in time; returns their numbers, for a message.
  std::vector<int> expire(double now, bool someone_here = true);
  [[nodiscard]] Presence presence(int member) const { return at(member).presence; }
  [[nodiscard]] bool finished(int member) const { return at(member).finished; }
  [[nodiscard]] int active() const;
  /// Number of membership changes so far.
  [[nodiscard]] uint64_t membership() const { return membership_; }

  // Data.
  /// Returns the plan if the member does not know it yet, and marks it as sent. `known` is the plan of the member's
  /// push, 0 for a joiner: an earlier answer with a newer plan may have been lost.
  std::optional<data::Plan> unseen_plan(int member, uint64_t known);
  [[nodiscard]] int64_t batches_per_update(int member) const;
  [[nodiscard]] data::Remainder remaining() const;

  // Updates.
  Verdict offer(const Push& push);
  /// Several servers: records that a server has the whole push; `forget` records that it has lost all pushes.
  void received(int server, int member, uint64_t incarnation, uint64_t sequence);
  void forget(int server);
  /// Returns the gradients of the next version, once every server has them. Async: a single one; sync: enough of them.
  [[nodiscard]] std::optional<Decision> decide() const;
  /// Counts the decision, whose gradients are in the parameters, or will be whatever happens.
  void committed(const Decision& decision);
  /// Several servers: one of them holds `version`.
  void reached(int server, uint64_t version);
  /// Returns the decisions after `version`, for a server that was away; nothing if they are not kept, or not made.
  [[nodiscard]] std::optional<std::vector<Decision>> missed(uint64_t version) const;
  /// Members that the current version waits for (sync), or that hold back the fast ones (bounded staleness).
  [[nodiscard]] std::vector<int> awaited() const;
  /// Servers that do not have all of a push that ps:0 has.
  [[nodiscard]] std::vector<int> awaited_servers() const;
  /// Returns true if the member's latest push is in a version.
  [[nodiscard]] bool is_applied(int member, uint64_t sequence) const { return at(member).applied >= sequence; }
  /// Bounded staleness: returns true if the member may start another batch.
  [[nodiscard]] bool may_go_on(int member) const;

  // The end.
  void stop(train::StopReason reason);
  [[nodiscard]] train::StopReason stopped() const { return stop_; }
  /// Returns true if all members have finished or, after a stop, left.
  [[nodiscard]] bool all_done() const {
    return unfinished().empty() && (stop_ != train::StopReason::none || !data_left());
  }
  /// Members that training cannot end without.
  [[nodiscard]] std::vector<int> unfinished() const;

  // Records.
  [[nodiscard]] const exchange::BatchReport& latest() const { return latest_; }  ///< report on the latest version
  [[nodiscard]] uint64_t examples() const { return examples_; }
  void set_examples(uint64_t examples) { examples_ = examples; }  ///< examples seen before this job
  [[nodiscard]] WorkerHistory& record(int member) { return at(member).record; }
  [[nodiscard]] uint64_t latest_staleness(int member) const { return at(member).latest_staleness; }
  [[nodiscard]] uint64_t applied_sequence(int member) const { return at(member).applied; }
  [[nodiscard]] uint64_t incarnation(int member) const { return at(member).incarnation; }
  void save(wire::Ledger& ledger, double now) const;
  /// Parts of the latest version; only with options().record.
  [[nodiscard]] const std::vector<Contributed>& contributions() const { return contributions_; }

 private:
  /// Batches of an earlier plan that a member is still computing.
  struct Reserved {
    std::vector<data::PassPart> parts;
    int64_t rounds = 0;
    int64_t examples = 0;
    uint64_t plan = 0;
  };
  struct Member {
    Presence presence = Presence::absent;
    bool finished = false;
    bool wants_in = false;  ///< waits to join with the next version
    uint64_t incarnation = 0;
    uint64_t applied = 0;  ///< sequence number of the latest applied push
    uint64_t clock = 0;
    uint64_t latest_staleness = 0;
    int64_t rounds = 0;     ///< rounds of all plans, including rounds without data for it
    int place = -1;         ///< position in the plan; -1: none
    int64_t done = 0;       ///< rounds done of the current plan
    bool answered = false;  ///< has parameters and computes on them
    Reserved reserved;
    uint64_t told_plan = 0;
    int64_t told_at = 0;                 ///< rounds it had done when the plan was sent
    std::unique_ptr<data::Rounds> told;  ///< plan as it was sent
    std::optional<Push> pending;
    uint64_t came = 0;          ///< when `pending` came, counted in pushes
    std::vector<bool> servers;  ///< for each server, whether it has the pending push
    uint64_t arriving = 0;      ///< sequence number that `servers` refers to
    WorkerHistory record;
  };

  [[nodiscard]] Member& at(int member) { return members_[static_cast<size_t>(member)]; }
  [[nodiscard]] const Member& at(int member) const { return members_[static_cast<size_t>(member)]; }
  /// Returns true if the member takes part in the plan and has not finished. Synchronous versions wait for it.
  [[nodiscard]] bool counts(const Member& member) const;
  [[nodiscard]] bool computes(const Member& member) const;
  /// Returns true if a plan that is told to it now begins where it is.
  [[nodiscard]] bool begins(const Member& member) const;
  [[nodiscard]] bool complete(const Member& member) const;
  [[nodiscard]] bool data_left() const;
  [[nodiscard]] data::Remainder left(bool with_living) const;
  void activate(Member& member);
  void weigh(Decision& decision) const;
  void load_member(Member& member, const wire::MemberState& saved);
  void save_member(const Member& member, wire::MemberState& saved) const;
  [[nodiscard]] std::optional<Decision> decide_on_one() const;
  void commit_one(Member& member);
  void commit_round(const Decision& decision);
  void count_applied(Member& member, const Push& push, uint64_t staleness);
  void note_contribution(const Member& member, const Push& push);
  [[nodiscard]] int64_t own_rounds() const;
  [[nodiscard]] bool holds(int member, int64_t rounds, uint64_t examples) const;
  [[nodiscard]] bool is_due(const Push& push) const;
  void replan();
  void admit_waiting();
  void reserve_current_batches();
  void reserve(Member& member, int64_t most);
  /// Sync with backup workers: true if some members have finished their share of a pass and others have not.
  [[nodiscard]] bool shares_differ() const;
  void check_limit();

  CoordinatorOptions options_;
  uint64_t version_ = 0;
  uint64_t pushes_ = 0;  ///< accepted so far by this process
  uint64_t membership_ = 0;
  std::vector<Member> members_;
  data::Plan plan_;
  int sharing_ = 0;  ///< number of members with a place in the plan
  bool plan_is_old_ = false;
  std::deque<Decision> announced_;  ///< several servers: decisions that some of them may not have applied
  std::vector<uint64_t> reached_;   ///< versions that the servers hold, at least
  exchange::BatchReport latest_;
  std::vector<Contributed> contributions_;
  uint64_t examples_ = 0;
  train::StopReason stop_ = train::StopReason::none;
  double start_ = 0;  ///< start on the caller's clock: now - start_ is the job's time
  double expected_until_ = 0;
};

}  // namespace lockstep::ps
