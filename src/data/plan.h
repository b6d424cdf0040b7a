// What is still to be seen of the data, and how it is shared among workers.
//
// A Remainder is a set of positions: ranges of passes that are under way, then whole passes for ever (a limit is the
// loader's). A position is an index into the pass's permutation (order.h). A Plan shares a remainder among `count`
// members in rounds: round r of a part is the next count * batch of its positions, member i takes slice i of them; the
// last round of a part is short and split as evenly as possible, earlier members taking one more, and some may get
// nothing. So every member computes its own batches without asking, over all members each position comes exactly once,
// and what a round holds does not depend on how it is cut. A member goes through its rounds in order, therefore what
// has been applied is one counter per member, and what has not is a Remainder again: the start of the next Plan when
// members come or go. Plain values; free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"

namespace lockstep::data {

/// Worker `index` of `count`.
struct Shard {
  int index = 0;
  int count = 1;

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Positions of one pass that are left; ranges are ascending, not empty and do not touch, and there is at least one.
struct PassPart {
  int64_t pass = 0;
  std::vector<base::Range> ranges;

  [[nodiscard]] int64_t size() const;
  friend bool operator==(const PassPart&, const PassPart&) = default;
};

struct Remainder {
  std::vector<PassPart> parts;  ///< passes under way, ascending
  int64_t next_pass = 0;        ///< this one and all that follow are untouched

  /// Of the position that comes first.
  [[nodiscard]] int64_t first_pass() const { return parts.empty() ? next_pass : parts.front().pass; }
  friend bool operator==(const Remainder&, const Remainder&) = default;
};

/// What one process has left of a data set of `examples` after `batches` batches of `batch` of pass `pass`.
Remainder remainder_after(int64_t pass, int64_t batches, int64_t batch, int64_t examples);

/// One member's batch of a round.
struct Round {
  int64_t pass = 0;
  int64_t index_in_part = 0;  ///< rounds of the part before it
  int64_t rounds_in_part = 0;
  bool whole_pass = false;          ///< the part is an untouched pass
  int64_t global_count = 0;         ///< positions of the round, over all members
  int64_t first_row = 0;            ///< of this member within the round
  int64_t count = 0;                ///< of this member; may be 0 in a part's last round
  std::vector<base::Range> ranges;  ///< this member's positions
};

struct Plan {
  uint64_t id = 0;
  Remainder data{};
  Shard shard{};            ///< this member among all
  int64_t batch = 1;        ///< per member
  int64_t examples = 0;     ///< in a pass
  int64_t rounds_done = 0;  ///< by this member under earlier plans: epochs of a fixed length count on

  /// UsageError when it makes no sense. More members than a pass has batches for do: its only round is short.
  void check() const;
  /// Round `index` of the plan, counted over its parts and then over whole passes. For many, make a Rounds.
  [[nodiscard]] Round round(int64_t index) const;
  /// The number of the first round that lies in pass `pass` or later.
  [[nodiscard]] int64_t rounds_before(int64_t pass) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// A plan laid out so that each round is found at once, however many ranges there are. Immutable; any thread.
class Rounds {
 public:
  /// Checks the plan.
  explicit Rounds(Plan plan);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Allocates only where `round` has held fewer ranges before.
  void read(int64_t index, Round& round) const;
  [[nodiscard]] int64_t before(int64_t pass) const;

 private:
  struct Part {
    int64_t first_round = 0;
    std::vector<int64_t> ends;  ///< of its ranges, laid end to end
  };

  Plan plan_;
  std::vector<Part> parts_;
  int64_t part_rounds_ = 0;  ///< of all parts
  int64_t rounds_per_pass_ = 0;
};

/// What is left when member i has applied its first done[i] rounds. `done.size()` is the plan's shard.count;
/// plan.shard.index does not matter. UsageError for a plan that makes no sense or counters that do not fit it.
Remainder unapplied(const Plan& plan, std::span<const int64_t> done);

/// UsageError when there is nothing to make batches of, or a batch of each worker is more than there is.
void check_batch(int64_t examples, int64_t batch, int workers = 1);

}  // namespace lockstep::data
