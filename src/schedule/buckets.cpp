#include "schedule/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::schedule {
namespace {

constexpr size_t kLine = 64 / sizeof(float);

}  // namespace

Buckets::Buckets(size_t count, size_t bytes)
    : count_(count),
      each_(std::max<size_t>(bytes / sizeof(float) / kLine, 1) * kLine),
      top_((count + kLine - 1) / kLine * kLine),
      missing_(std::max<size_t>((top_ + each_ - 1) / each_, 1)) {
  begin();
}

ParameterRange Buckets::range(size_t i) const {
  const size_t end = std::min(top_ - i * each_, count_);
  const size_t begin = top_ - std::min((i + 1) * each_, top_);
  return {begin, end - begin};
}

void Buckets::begin() {
  for (size_t i = 0; i < missing_.size(); ++i) missing_[i] = range(i).count;
  complete_ = 0;
}

size_t Buckets::announced(ParameterRange range) {
  if (range.count == 0) return 0;
  const size_t end = range.offset + range.count;
  const auto refuse = [&](const char* why) {
    return UsageError(fmt::format("gradients {} to {} of {} {}", range.offset, end, count_, why));
  };
  if (range.offset > count_ || range.count > count_ - range.offset) throw refuse("are out of range");
  for (size_t i = bucket_of(end - 1); i <= bucket_of(range.offset); ++i) {
    const ParameterRange bucket = this->range(i);
    const size_t shared = std::min(end, bucket.offset + bucket.count) - std::max(range.offset, bucket.offset);
    if (shared > missing_[i]) throw refuse("were announced before");
    missing_[i] -= shared;
  }
  const size_t before = complete_;
  while (complete_ < missing_.size() && missing_[complete_] == 0) ++complete_;
  return complete_ - before;
}

}  // namespace lockstep::schedule
