// The cost of training in groups so far: work of every member, communication of this process, stragglers. All members
// count the same. Plain values; for the training thread; allocates per step only if there is an event to report.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allreduce/notes.h"
#include "allreduce/stragglers.h"
#include "collective/collective.h"

namespace lockstep::allreduce {

/// Work of a member, as far as this process has seen it.
struct MemberTotals {
  uint64_t steps = 0;
  uint64_t batches = 0;
  uint64_t examples = 0;
  uint64_t joins = 0;
  double load_seconds = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double transfer_seconds = 0;
};

/// Cost of communication for this process.
struct Communication {
  std::string engine;
  size_t bucket_bytes = 0;
  size_t buckets = 0;
  uint64_t steps = 0;
  uint64_t groups = 0;
  uint64_t bytes_sent = 0;      ///< bytes of these steps, without the state sent to joining members
  double transfer_seconds = 0;  ///< time in operations of the group
  double wait_seconds = 0;      ///< part of it with nothing left to compute
};

class Accounting {
 public:
  /// `names`: all possible members, by number
  explicit Accounting(const std::vector<std::string>& names) : totals_(names.size()), stragglers_(names) {}

  /// Records another group; `before` are the members of the last one.
  void joined(const collective::Collective& group, const std::vector<int>& members, const std::vector<int>& before);
  /// Training in the group begins. Bytes that the group has sent until now belong to no step.
  void begin(const collective::Collective& group) { bytes_counted_ = group.traffic().sent; }
  /// The way of communication has changed: averages for these members start anew.
  void restart_stragglers(const std::vector<int>& members) { stragglers_.restart(members); }
  /// Records a step of `batches` batches per member; `mine` are this process's times. Returns who became slow, or is
  /// not slow any more.
  std::vector<StragglerEvent> step(uint64_t step, uint64_t batches, const Notes& notes, const StepTimes& mine,
                                   const std::vector<int>& members, const collective::Collective& group);

  /// Totals by member number.
  [[nodiscard]] const std::vector<MemberTotals>& totals() const { return totals_; }
  /// The totals, to be sent to a new member: all members know the same.
  [[nodiscard]] std::span<std::byte> shared() { return std::as_writable_bytes(std::span(totals_)); }
  [[nodiscard]] const Communication& communication() const { return communication_; }
  [[nodiscard]] StragglerReport stragglers() const { return stragglers_.report(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<MemberTotals> totals_;
  Communication communication_;
  Stragglers stragglers_;
  std::vector<MemberTimes> paces_;  ///< times of the latest step, by rank
  Clock::time_point made_ = Clock::now();
  uint64_t bytes_counted_ = 0;  ///< bytes sent by this group that are counted already
};

}  // namespace lockstep::allreduce
