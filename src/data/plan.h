// The part of the data still to be seen, and its distribution among workers.
//
// A Remainder is a set of positions: ranges of passes under way, then all later passes (the loader sets a limit). A
// position is an index into the pass's permutation (order.h). A Plan distributes a remainder among `count` members in
// rounds: round r of a part is the next count * batch of its positions, and member i takes slice i of them. The last
// round of a part is short and split as evenly as possible: earlier members take one more, and some may get nothing. So
// every member computes its own batches without asking, all members together take each position exactly once, and the
// content of a round does not depend on how it is cut. A member applies its rounds in order. One counter per member
// therefore records the applied data, and the rest is a Remainder again: the start of the next Plan when members join
// or leave. Plain values; free functions; any thread.
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

/// The positions of one pass that are left; ranges are ascending, not empty and do not touch. At least one range.
struct PassPart {
  int64_t pass = 0;
  std::vector<base::Range> ranges;

  [[nodiscard]] int64_t size() const;
  friend bool operator==(const PassPart&, const PassPart&) = default;
};

struct Remainder {
  std::vector<PassPart> parts;  ///< passes under way, ascending
  int64_t next_pass = 0;        ///< first untouched pass; all later ones are untouched too

  /// Returns the pass of the first position.
  [[nodiscard]] int64_t first_pass() const { return parts.empty() ? next_pass : parts.front().pass; }
  friend bool operator==(const Remainder&, const Remainder&) = default;
};

/// Returns the data that one process has left of a data set of `examples` after `batches` batches of `batch` of pass
/// `pass`.
Remainder remainder_after(int64_t pass, int64_t batches, int64_t batch, int64_t examples);

/// One member's batch of a round.
struct Round {
  int64_t pass = 0;
  int64_t index_in_part = 0;  ///< rounds of the part before this one
  int64_t rounds_in_part = 0;
  bool whole_pass = false;          ///< true: the part is an untouched pass
  int64_t global_count = 0;         ///< positions of the round, over all members
  int64_t first_row = 0;            ///< this member's first row within the round
  int64_t count = 0;                ///< this member's examples; may be 0 in a part's last round
  std::vector<base::Range> ranges;  ///< this member's positions
};

struct Plan {
  uint64_t id = 0;
  Remainder data{};
  Shard shard{};            ///< this member's index and the number of members
  int64_t batch = 1;        ///< per member
  int64_t examples = 0;     ///< in a pass
  int64_t rounds_done = 0;  ///< by this member under earlier plans, since epochs of a fixed length continue counting

  /// Throws UsageError for an invalid plan. More members than a pass has batches are allowed: its only round is then
  /// short.
  void check() const;
  /// Returns round `index` of the plan, counted over its parts and then over whole passes. To read many, make a Rounds.
  [[nodiscard]] Round round(int64_t index) const;
  /// Returns the number of the first round in pass `pass` or later.
  [[nodiscard]] int64_t rounds_before(int64_t pass) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// A plan in a form that finds each round in constant time, however many ranges there are. Immutable; any thread.
class Rounds {
 public:
  /// Throws UsageError for an invalid plan.
  explicit Rounds(Plan plan);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Reads round `index`. Allocates only if `round` has held fewer ranges before.
  void read(int64_t index, Round& round) const;
  [[nodiscard]] int64_t before(int64_t pass) const;

 private:
  struct Part {
    int64_t first_round = 0;
    std::vector<int64_t> ends;  ///< ends of its ranges, laid end to end
  };

  Plan plan_;
  std::vector<Part> parts_;
  int64_t part_rounds_ = 0;  ///< rounds of all parts
  int64_t rounds_per_pass_ = 0;
};

/// Returns the data left after member i has applied its first done[i] rounds. `done.size()` is the plan's shard.count;
/// plan.shard.index is ignored. Throws UsageError for an invalid plan or counters that do not fit it.
Remainder unapplied(const Plan& plan, std::span<const int64_t> done);

/// Throws UsageError if there are no examples, or fewer than one batch of each worker.
void check_batch(int64_t examples, int64_t batch, int workers = 1);

}  // namespace lockstep::data
