// The members of a training by all-reduce, and their connections. Members have the cluster's numbers (Spec::members()).
// In a group they are ranked in the order of their numbers, and rank 0 leads: it evaluates, writes checkpoints and logs
// for all. A group is fixed. If it breaks or a new member waits to join, every member calls `form` again, and the next
// group goes on from the newest state among its members.
//
//   static_membership.h   one fixed group: thread groups, ranks of an MPI job
//   elastic/              processes that join, leave and die
//
// Only the training thread calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/collective.h"
#include "data/plan.h"
#include "lockstep/run_types.h"

namespace lockstep::allreduce {

/// A member's position in the training.
struct Standing {
  bool whole = true;  ///< false: its state is only partly received from another member, so it cannot be a source
  /// Its state is the one from before its latest group, because that group's did not arrive.
  bool earlier = false;
  bool live = false;  ///< it has trained in a group; false: it has the state of a checkpoint or of the initial model
  uint64_t step = 0;  ///< step of its parameters and optimizer state
  uint64_t examples = 0;      ///< examples seen by all since the start of training
  data::Remainder data;       ///< data not yet applied
  uint64_t bucket_bytes = 0;  ///< bucket size; 0: not found yet
};

/// A connected group.
struct Formed {
  uint64_t number = 0;       ///< increases with each group
  std::vector<int> members;  ///< member numbers by rank, ascending
  std::shared_ptr<collective::Collective> collective;
  int source = 0;         ///< rank of the member whose state all continue from
  bool transfer = true;   ///< some members do not have that state
  bool holds = false;     ///< this member already has that state; the transfer rewrites identical bytes
  Standing standing;      ///< state of the source
  std::string announced;  ///< a line for the log about members that left or joined; may be empty
};

/// A member's task once all members agreed to stop.
enum class Parting : uint8_t {
  closes,  ///< it leads (now): it evaluates and writes for all, then calls `end`
  leaves   ///< the leader has written everything
};

class Membership {
 public:
  virtual ~Membership() = default;

  /// Leaves the current group and joins the next one; waits until it is connected. A failure is final: it names the
  /// members waited for, and what the user can do.
  virtual base::Result<Formed> form(const Standing& standing) = 0;
  /// The state that the group goes on from is here, if it had to be received.
  virtual void received() {}
  /// True if a new member waits to join. Cheap; rank 0 asks before each step and tells the others.
  [[nodiscard]] virtual bool wants_regroup() const { return false; }

  /// Ends training after all members agreed to stop for the reason `why`. Rank 0 returns at once and closes the run for
  /// all. The others wait until it has called `end`, or until they lead themselves.
  virtual base::Result<Parting> close(train::StopReason why) = 0;
  /// Lets all members leave; called by the leader when everything is written.
  virtual void end() = 0;
  /// True if training was over before this member joined: form() fails, and there is nothing to do.
  [[nodiscard]] virtual bool over() const { return false; }
  /// True if a user interrupted another member, which stops all members: form() fails.
  [[nodiscard]] virtual bool interrupted() const { return false; }
  /// After form() failed: true if this is the first remaining member of the latest group, and none went on without it.
  [[nodiscard]] virtual bool first_survivor() const = 0;

  /// Returns why a file of the latest group must not be kept: another group may have taken its place. Empty: it may.
  /// Waits for the answer.
  [[nodiscard]] virtual std::string why_not_latest() { return {}; }

  /// Hands the parameters of a checkpoint that the leader wrote to the evaluator. Copies the values.
  virtual void publish(uint64_t /*step*/, std::span<const float> /*parameters*/) {}
  /// Returns the reason of a stop that the evaluator asked for, or none.
  [[nodiscard]] virtual train::StopReason evaluator_stop() const { return train::StopReason::none; }
};

}  // namespace lockstep::allreduce
