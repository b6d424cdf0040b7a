// Who decides: the coordinator of a job, part of ps:0. It knows who trains, which data has been given out and applied,
// whose gradients make the next version, and when all end. Pure logic over plain values: no network, no threads, no
// clock of its own (the caller passes seconds), so every rule can be tested by itself. The caller locks.
//
// Members are the workers by number (the chief is 0). Each is absent (expected: it has not come yet), active, or gone;
// and it may have finished its share. A Plan (data/plan.h) shares what is left of the data among those who are expected
// or active; whenever that set changes, a new plan is made of what has not been applied: at once in asynchronous mode,
// at the next version in synchronous mode. In asynchronous mode the batches that living members are computing when the
// plan changes stay theirs (`reserved`). A push counts only for exactly the batches that are its sender's.
//
//   coordinator.cpp         members, versions, the end
//   coordinator_data.cpp    plans: who computes what, what is left
//   coordinator_ledger.cpp  what is written down
#pragma once

#include <cstdint>
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
  int64_t max_staleness = -1;  ///< async: most clocks ahead of the slowest; -1: no bound
  int64_t aggregate = 0;       ///< sync: gradients per update; 0: one of each member
  bool mean = true;            ///< of the gradients; else their sum
  bool mean_loss = true;       ///< the loss is a mean over the batch: gradients count by examples
  int64_t batch = 1;           ///< per member
  int64_t accumulate = 1;      ///< batches per push, at least
  int64_t examples = 1;        ///< in a pass
  int64_t passes = 0;          ///< over the data; 0: not limited by passes
  bool sharded = true;         ///< false: every member sees all data, nothing is given out again
  uint64_t limit_steps = 0;    ///< 0: none
  double start_wait = 60;      ///< seconds that expected members may take to come
  bool record = false;         ///< keep what each version was made of, for contributions()
};

/// A push as its last frame tells it.
struct Push {
  int member = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;  ///< counts up per incarnation
  uint64_t base = 0;      ///< version that it was computed on
  uint64_t plan = 0;      ///< id of the plan that its data came from
  int64_t rounds = 1;     ///< of that plan
  exchange::BatchReport report;
};

enum class Verdict : uint8_t {
  accepted,  ///< async: apply it now; sync: it waits for the others
  repeated,  ///< it was applied before: answer only
  dropped,   ///< too late: answer with the newest parameters
  rejoin,    ///< the sender is not one of us (any more)
  stopped
};

/// The gradients that make a version, in the order in which they are summed.
struct Contributor {
  int member = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  float weight = 1;  ///< relative to the first
};
struct Decision {
  uint64_t version = 0;  ///< that it makes
  std::vector<Contributor> contributors;
  float mean_scale = 1;  ///< for the sum
};

/// What is known of a member, for reports.
struct WorkerHistory {
  uint64_t iterations = 0;  ///< batches computed and applied
  uint64_t examples = 0;
  uint64_t updates = 0;
  uint64_t dropped = 0;
  uint64_t joins = 0;               ///< of its processes, one after the other
  double finished_seconds = 0;      ///< 0: has not
  std::vector<uint64_t> staleness;  ///< histogram, the last bin for all above
  uint64_t staleness_sum = 0;
  uint64_t staleness_max = 0;
  double wait_seconds = 0;
  double busy_seconds = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of its own evaluation at its end
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

WorkerHistory record_of(const wire::MemberState& saved);

class Coordinator {
 public:
  enum class Presence : uint8_t { absent, active, gone };

  /// A new job at `version`, with this data left.
  Coordinator(const CoordinatorOptions& options, uint64_t version, data::Remainder data, double now);
  /// The job of a ledger: everyone is expected back, with a new plan of what had not been applied.
  Coordinator(const CoordinatorOptions& options, const wire::Ledger& ledger, double now);

  [[nodiscard]] const CoordinatorOptions& options() const { return options_; }
  [[nodiscard]] uint64_t version() const { return version_; }

  // Membership.
  /// Asks to take part. True: from now on; false: with the next version, then `takes_part`.
  bool join(int member, uint64_t incarnation);
  [[nodiscard]] bool takes_part(int member, uint64_t incarnation) const;
  /// Its process died, was cut off or is silent. False: it was not here.
  bool depart(int member, uint64_t incarnation);
  /// Has no more data of its own, or met a rule that ends all. `rounds` had nothing for it since its last push.
  void finish(int member, uint64_t incarnation, train::StopReason reason, int64_t rounds, double now);
  /// Whether a member that finished is needed for what others left.
  [[nodiscard]] bool needed_again(int member) const;
  /// Expected members that took too long are gone; their names for a message.
  std::vector<int> expire(double now, bool someone_here = true);
  [[nodiscard]] Presence presence(int member) const { return at(member).presence; }
  [[nodiscard]] bool finished(int member) const { return at(member).finished; }
  [[nodiscard]] int active() const;
  /// Counts the changes of who takes part.
  [[nodiscard]] uint64_t membership() const { return membership_; }

  // Data.
  /// The plan, where a member does not know it (and marks it told). `known` is the plan that its push came from, 0 for
  /// one that joins: an answer that told it a newer one may have been lost on the way.
  std::optional<data::Plan> news(int member, uint64_t known);
  [[nodiscard]] int64_t batches_per_update(int member) const;
  [[nodiscard]] data::Remainder remaining() const;

  // Updates.
  Verdict offer(const Push& push);
  /// Async: an accepted push has been applied.
  void applied(const Push& push);
  /// Sync with several servers: a server has the whole push; `forget` when it has lost all.
  void received(int server, int member, uint64_t incarnation, uint64_t sequence);
  void forget(int server);
  /// Sync: the gradients of the next version, once there are enough.
  [[nodiscard]] std::optional<Decision> decide() const;
  void committed(const Decision& decision);
  /// Whose push the current version is waiting for (sync), or who holds the fast ones back (bounded staleness).
  [[nodiscard]] std::vector<int> awaited() const;
  /// Whether its latest push is in a version.
  [[nodiscard]] bool is_applied(int member, uint64_t sequence) const { return at(member).applied >= sequence; }
  /// Bounded staleness: whether the member may start another batch.
  [[nodiscard]] bool may_go_on(int member) const;

  // The end.
  void stop(train::StopReason reason);
  [[nodiscard]] train::StopReason stopped() const { return stop_; }
  /// Everyone has finished or, after a stop, left.
  [[nodiscard]] bool all_done() const;

  // Records.
  [[nodiscard]] const exchange::BatchReport& latest() const { return latest_; }  ///< of the latest version
  [[nodiscard]] uint64_t examples() const { return examples_; }
  void set_examples(uint64_t examples) { examples_ = examples; }  ///< seen before this job
  [[nodiscard]] const std::optional<Decision>& last_decision() const { return decision_; }
  [[nodiscard]] WorkerHistory& record(int member) { return at(member).record; }
  [[nodiscard]] uint64_t latest_staleness(int member) const { return at(member).latest_staleness; }
  [[nodiscard]] uint64_t applied_sequence(int member) const { return at(member).applied; }
  [[nodiscard]] uint64_t incarnation(int member) const { return at(member).incarnation; }
  void save(wire::Ledger& ledger, double now) const;
  /// What the latest version was made of; only with options().record.
  [[nodiscard]] const std::vector<Contributed>& contributions() const { return contributions_; }

 private:
  /// Batches of an earlier plan that a member is computing.
  struct Reserved {
    std::vector<data::PassPart> parts;
    int64_t rounds = 0;
    int64_t examples = 0;
    uint64_t plan = 0;
  };
  struct Member {
    Presence presence = Presence::absent;
    bool finished = false;
    bool wants_in = false;  ///< joins with the next version
    uint64_t incarnation = 0;
    uint64_t applied = 0;  ///< sequence
    uint64_t clock = 0;
    uint64_t latest_staleness = 0;
    int64_t rounds = 0;     ///< of all plans, with those that had nothing for it
    int place = -1;         ///< in the plan
    int64_t done = 0;       ///< rounds of the plan
    bool answered = false;  ///< has parameters, and computes on them
    Reserved reserved;
    uint64_t told_plan = 0;
    int64_t told_at = 0;                 ///< what it had done then
    std::unique_ptr<data::Rounds> told;  ///< the plan as it was told
    std::optional<Push> pending;
    std::vector<bool> servers;  ///< that have the pending push
    uint64_t arriving = 0;      ///< the sequence that `servers` is about
    WorkerHistory record;
  };

  [[nodiscard]] Member& at(int member) { return members_[static_cast<size_t>(member)]; }
  [[nodiscard]] const Member& at(int member) const { return members_[static_cast<size_t>(member)]; }
  /// Whether a version waits for it.
  [[nodiscard]] bool counts(const Member& member) const;
  [[nodiscard]] bool computes(const Member& member) const;
  [[nodiscard]] bool complete(const Member& member) const;
  [[nodiscard]] bool data_left() const;
  [[nodiscard]] data::Remainder left(bool with_living) const;
  void activate(Member& member);
  void weigh(Decision& decision) const;
  void load_member(Member& member, const wire::MemberState& saved);
  void save_member(const Member& member, wire::MemberState& saved) const;
  void count_applied(Member& member, const Push& push, uint64_t staleness);
  void note_contribution(const Member& member, const Push& push);
  [[nodiscard]] int64_t own_rounds() const;
  [[nodiscard]] bool holds(int member, int64_t rounds, uint64_t examples) const;
  [[nodiscard]] bool is_due(const Push& push) const;
  void replan();
  void let_in();
  void reserve_current_batches();
  void reserve(Member& member, int64_t most);
  /// Sync with backup workers: someone went through its share of a pass while others have not.
  [[nodiscard]] bool shares_differ() const;
  void check_limit();

  CoordinatorOptions options_;
  uint64_t version_ = 0;
  uint64_t membership_ = 0;
  std::vector<Member> members_;
  data::Plan plan_;
  int sharing_ = 0;  ///< those who have a place
  bool plan_is_old_ = false;
  std::optional<Decision> decision_;
  exchange::BatchReport latest_;
  std::vector<Contributed> contributions_;
  uint64_t examples_ = 0;
  train::StopReason stop_ = train::StopReason::none;
  double start_ = 0;  ///< on the caller's clock, so that now - start_ is the job's time
  double expected_until_ = 0;
};

}  // namespace lockstep::ps
