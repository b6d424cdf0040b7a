// What is still to be seen of the data, and how it is shared among workers.
//
// A Remainder is a set of positions: ranges of passes that are under way, then whole passes for ever (a limit is the
// loader's). A position is an index into the pass's permutation (order.h). A Plan shares a remainder among `count`
// members in rounds: round r of a part is the next count * batch of its positions, member i takes slice i of them; the
// last round of a part is short and split as evenly as possible, earlier members taking one more. So every member
// computes its own batches without asking, and over all members each position comes exactly once. A member goes through
// its rounds in order, therefore what has been applied is one counter per member, and what has not is a Remainder
// again: the start of the next Plan when members come or go. Plain values; free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "data/order.h"

namespace lockstep::data {

/// Positions of one pass that are left; ranges are ascending, not empty and do not touch.
struct PassPart {
  int64_t pass = 0;
  std::vector<base::Range> ranges;

  [[nodiscard]] int64_t size() const;
  friend bool operator==(const PassPart&, const PassPart&) = default;
};

struct Remainder {
  std::vector<PassPart> parts;  ///< passes under way, ascending
  int64_t next_pass = 0;        ///< this one and all that follow are untouched

  friend bool operator==(const Remainder&, const Remainder&) = default;
};

/// One member's batch of a round.
struct Round {
  int64_t pass = 0;
  int64_t index_in_part = 0;  ///< rounds of the part before it
  int64_t rounds_in_part = 0;
  bool whole_pass = false;          ///< the part is an untouched pass
  int64_t global_count = 0;         ///< positions of the round, over all members
  int64_t first_row = 0;            ///< of this member within the round
  std::vector<base::Range> ranges;  ///< this member's positions; may be empty in a part's last round
};

struct Plan {
  uint64_t id = 0;
  Remainder data;
  Shard shard;           ///< this member among all
  int64_t batch = 1;     ///< per member
  int64_t examples = 0;  ///< in a pass

  /// Round `index` of the plan, counted over its parts and then over whole passes.
  [[nodiscard]] Round round(int64_t index) const;
  /// The number of the first round that lies in pass `pass` or later.
  [[nodiscard]] int64_t rounds_before(int64_t pass) const;
};

/// What is left when member i has applied its first done[i] rounds. `done.size()` is the plan's shard.count;
/// plan.shard.index does not matter.
Remainder unapplied(const Plan& plan, std::span<const int64_t> done);

}  // namespace lockstep::data
