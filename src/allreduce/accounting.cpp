#include "allreduce/accounting.h"

#include <algorithm>
#include <type_traits>

namespace lockstep::allreduce {

static_assert(std::is_trivially_copyable_v<MemberTotals>, "they are sent to new members as bytes");

void Accounting::joined(const collective::Collective& group, const std::vector<int>& members,
                        const std::vector<int>& before) {
  ++communication_.groups;
  communication_.engine = group.engine();
  for (const int member : members) {
    const bool was_here = std::find(before.begin(), before.end(), member) != before.end();
    if (!was_here) ++totals_[static_cast<size_t>(member)].joins;
  }
  stragglers_.restart(members);
}

std::vector<StragglerEvent> Accounting::step(uint64_t step, uint64_t batches, const Notes& notes, const StepTimes& mine,
                                             const std::vector<int>& members, const collective::Collective& group) {
  communication_.transfer_seconds += static_cast<double>(mine.transfer);
  communication_.wait_seconds += static_cast<double>(mine.wait);
  ++communication_.steps;
  const uint64_t sent = group.traffic().sent;
  communication_.bytes_sent += sent - bytes_counted_;
  bytes_counted_ = sent;
  paces_.resize(notes.times.size());
  for (size_t rank = 0; rank < notes.times.size(); ++rank) {
    const StepTimes& times = notes.times[rank];
    paces_[rank] = {static_cast<double>(times.load), static_cast<double>(times.compute),
                    static_cast<double>(times.wait)};
    MemberTotals& totals = totals_[static_cast<size_t>(members[rank])];
    ++totals.steps;
    totals.batches += batches;
    totals.examples += static_cast<uint64_t>(times.examples);
    totals.load_seconds += static_cast<double>(times.load);
    totals.compute_seconds += static_cast<double>(times.compute);
    totals.wait_seconds += static_cast<double>(times.wait);
    totals.transfer_seconds += static_cast<double>(times.transfer);
  }
  return stragglers_.step(step, std::chrono::duration<double>(Clock::now() - made_).count(), paces_);
}

}  // namespace lockstep::allreduce
