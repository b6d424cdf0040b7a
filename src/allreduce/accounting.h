// What training in groups has cost so far: what every member did, what exchanging cost this process, who is slow. Every
// member counts the same for all. Plain values; for the training thread; allocates per step only where there is
// something to say.
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

/// What a member did, as far as this process has seen it.
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

/// What exchanging cost this process.
struct Communication {
  std::string engine;
  size_t bucket_bytes = 0;
  size_t buckets = 0;
  uint64_t steps = 0;
  uint64_t groups = 0;
  uint64_t bytes_sent = 0;      ///< in these steps; not what joining members were given
  double transfer_seconds = 0;  ///< in operations of the group
  double wait_seconds = 0;      ///< of these, while nothing was left to compute
};

class Accounting {
 public:
  /// `names` of all that may be members, by number.
  explicit Accounting(const std::vector<std::string>& names) : totals_(names.size()), stragglers_(names) {}

  /// Another group, `before` being the members of the last one.
  void joined(const collective::Collective& group, const std::vector<int>& members, const std::vector<int>& before);
  /// Training in the group begins: what it has sent until now was no step's.
  void begin(const collective::Collective& group) { bytes_counted_ = group.traffic().sent; }
  /// The way of exchanging has changed: what was usual for these members begins anew.
  void restart_stragglers(const std::vector<int>& members) { stragglers_.restart(members); }
  /// A step was made, of so many batches per member; `mine` is what it cost this process. Gives who became slow, or is
  /// so no longer.
  std::vector<StragglerEvent> step(uint64_t step, uint64_t batches, const Notes& notes, const StepTimes& mine,
                                   const std::vector<int>& members, const collective::Collective& group);

  /// By member number.
  [[nodiscard]] const std::vector<MemberTotals>& totals() const { return totals_; }
  /// To be told to a new member: everyone knows the same.
  [[nodiscard]] std::span<std::byte> shared() { return std::as_writable_bytes(std::span(totals_)); }
  [[nodiscard]] const Communication& communication() const { return communication_; }
  [[nodiscard]] StragglerReport stragglers() const { return stragglers_.report(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<MemberTotals> totals_;
  Communication communication_;
  Stragglers stragglers_;
  std::vector<MemberTimes> paces_;  ///< of the latest step, by rank
  Clock::time_point made_ = Clock::now();
  uint64_t bytes_counted_ = 0;  ///< of what this group has sent
};

}  // namespace lockstep::allreduce
