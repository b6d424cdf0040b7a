#include "allreduce/autotune.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::allreduce {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kSizes[] = {kMegabyte / 4, kMegabyte, 4 * kMegabyte, 16 * kMegabyte, 25 * kMegabyte, 64 * kMegabyte};
constexpr int kRounds = 2;
/// Steps with one size in a round. The first allocates memory and is not counted.
constexpr int kSteps = 6;
/// Gain over the default that another size needs.
constexpr double kGain = 0.01;

}  // namespace

Autotune::Autotune(size_t count_bytes, size_t default_bytes) {
  // All sizes that hold the whole buffer give the same layout.
  const auto offer = [&](size_t bytes) {
    const auto same = [&](const Candidate& other) {
      return std::min(other.bytes, count_bytes) == std::min(bytes, count_bytes);
    };
    if (std::none_of(candidates_.begin(), candidates_.end(), same)) candidates_.push_back({bytes, {}, 0});
  };
  offer(default_bytes);
  for (const size_t bytes : kSizes) offer(bytes);
  offer(count_bytes);
  for (Candidate& candidate : candidates_) candidate.seconds.reserve(kSteps);
  done_ = candidates_.size() == 1;
}

size_t Autotune::steps() const { return candidates_.size() == 1 ? 0 : candidates_.size() * kRounds * kSteps; }

void Autotune::step(double group_step_seconds) {
  if (done_) return;
  Candidate& candidate = candidates_[current_];
  const double seconds = std::isnan(group_step_seconds) ? std::numeric_limits<double>::infinity() : group_step_seconds;
  if (made_ > 0) candidate.seconds.push_back(seconds);
  if (++made_ < kSteps) return;
  made_ = 0;
  close_round(candidate);
  if (++current_ < candidates_.size()) return;
  current_ = 0;
  if (++round_ == kRounds) decide();
}

void Autotune::close_round(Candidate& candidate) const {
  const auto middle = candidate.seconds.begin() + static_cast<ptrdiff_t>(candidate.seconds.size() / 2);
  std::nth_element(candidate.seconds.begin(), middle, candidate.seconds.end());
  candidate.median = round_ == 0 ? *middle : std::min(candidate.median, *middle);
  candidate.seconds.clear();
}

void Autotune::decide() {
  double least = candidates_[0].median * (1 - kGain);
  for (size_t i = 1; i < candidates_.size(); ++i) {
    if (candidates_[i].median >= least) continue;
    least = candidates_[i].median;
    current_ = i;
  }
  done_ = true;
}

}  // namespace lockstep::allreduce
