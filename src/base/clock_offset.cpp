#include "base/clock_offset.h"

#include <algorithm>

namespace lockstep::base {
namespace {

/// Another process may send any value. Half of the range leaves room for a difference.
bool plausible(int64_t time) { return time > 0 && time < std::numeric_limits<int64_t>::max() / 2; }

}  // namespace

void ClockOffset::sent(int64_t here, int64_t there) {
  if (plausible(here) && plausible(there)) most_ = std::min(most_, there - here);
}

void ClockOffset::came(int64_t there, int64_t here) {
  if (plausible(here) && plausible(there)) least_ = std::max(least_, there - here);
}

void ClockOffset::saw(int64_t here, int64_t there) {
  if (plausible(here) && plausible(there) && moments_.size() < kMoments) moments_.push_back(there - here);
}

std::optional<int64_t> ClockOffset::nanoseconds(bool one_machine) const {
  const bool bounded = most_ != kUnknown && least_ != -kUnknown;
  const bool may_be_none = least_ <= 0 && most_ >= 0;
  if (may_be_none && (one_machine || (bounded && moments_.empty()))) return 0;
  if (!moments_.empty()) {
    std::vector<int64_t> sorted = moments_;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    // The bounds of clocks that drift apart may contradict each other after a while.
    return bounded && least_ <= most_ ? std::clamp(*middle, least_, most_) : *middle;
  }
  if (!bounded) return std::nullopt;
  return least_ / 2 + most_ / 2;
}

}  // namespace lockstep::base
