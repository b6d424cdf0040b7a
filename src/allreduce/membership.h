// Who takes part in a training by all-reduce, and over what they reach each other. Members are numbered as the
// cluster's (Spec::members()); those of a group are ranked in the order of their numbers, and rank 0 leads: it
// evaluates, writes checkpoints and logs for all. A group is fixed; when it breaks or someone waits to get in, everyone
// calls `form` again and the next group goes on from the newest state that one of them has.
//
//   static_membership.h   one group for ever: thread groups, ranks of an MPI job
//   elastic/              processes that come, go and die
//
// The training thread calls everything.
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

/// Where a member is in the training.
struct Standing {
  bool whole = true;      ///< its state is one; false: it got only part of another's, and cannot be anyone's source
  bool live = false;      ///< it has trained in a group; else it has what a checkpoint or the model itself begins with
  uint64_t step = 0;      ///< of the parameters and optimizer state that it holds
  uint64_t examples = 0;  ///< seen by all since the start of training
  data::Remainder data;   ///< what has not been applied
  uint64_t bucket_bytes = 0;  ///< that it exchanges at a time; 0: it has not found out yet
};

/// A group, connected.
struct Formed {
  uint64_t number = 0;       ///< counts up
  std::vector<int> members;  ///< by rank, ascending
  std::shared_ptr<collective::Collective> collective;
  int source = 0;         ///< the rank whose state everyone goes on from
  bool transfer = true;   ///< not everyone has that state
  bool holds = false;     ///< this member has it already: the same comes again
  Standing standing;      ///< the source's
  std::string announced;  ///< for people: who left, who came; may be empty
};

/// What a member has to do once all members agreed to stop.
enum class Parting : uint8_t {
  closes,  ///< it leads (now): it evaluates and writes for all, then calls `end`
  leaves   ///< the leader has written everything
};

class Membership {
 public:
  virtual ~Membership() = default;

  /// Leaves the group that it was in and takes part in the next one; waits until that is connected. A failure is
  /// final: it names who was awaited, and what the user can do.
  virtual base::Result<Formed> form(const Standing& standing) = 0;
  /// Whether someone waits to get in. Cheap; asked of rank 0 before each step, who tells the others.
  [[nodiscard]] virtual bool wants_regroup() const { return false; }

  /// All members agreed to stop, for that reason. Rank 0 returns at once and closes for all; the others wait until it
  /// has called `end`, or until they lead themselves.
  virtual base::Result<Parting> close(train::StopReason why) = 0;
  /// The leader, when all is written: everyone may go.
  virtual void end() = 0;
  /// Whether training was over before this member came: form() fails then, and it has nothing to do.
  [[nodiscard]] virtual bool over() const { return false; }
  /// Whether a user has ended another member, and so all: form() fails then.
  [[nodiscard]] virtual bool interrupted() const { return false; }
  /// After form() failed: whether this is the first of the latest group that is left, and none has gone on without it.
  [[nodiscard]] virtual bool foremost() const = 0;

  /// The leader has written a checkpoint: for the evaluator, who follows them. The values are copied.
  virtual void publish(uint64_t /*step*/, std::span<const float> /*parameters*/) {}
  /// A goal that the evaluator met; none: it has not.
  [[nodiscard]] virtual train::StopReason evaluators_word() const { return train::StopReason::none; }
};

}  // namespace lockstep::allreduce
