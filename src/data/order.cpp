#include "data/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kShuffleStream = 0x73687566666c65;  // "shuffle"
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();

}  // namespace

Shuffle Shuffle::parse(const std::string& text) {
  if (text == "all") return all();
  if (text == "none") return none();
  int64_t size = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc{} || stop != end || size < 1) {
    throw UsageError(fmt::format("shuffle '{}': all, none or a buffer size of at least 1 is allowed", text));
  }
  return of_buffer(size);
}

EpochOrder::EpochOrder(int64_t count, Shuffle shuffle, uint64_t seed) : shuffle_(shuffle), seed_(seed) {
  if (count < 0 || count > kMaxExamples) {
    throw UsageError(fmt::format("{} examples; 0 to {} are allowed", count, kMaxExamples));
  }
  if (shuffle.kind == Shuffle::Kind::kBuffer && shuffle.buffer < 1) {
    throw UsageError(fmt::format("a shuffle buffer of {}; at least 1 is allowed", shuffle.buffer));
  }
  order_.resize(static_cast<size_t>(count));
  if (shuffle.kind == Shuffle::Kind::kBuffer) window_.resize(static_cast<size_t>(std::min(count, shuffle.buffer)));
}

std::span<const uint32_t> EpochOrder::pass(int64_t pass) {
  if (pass == made_) return order_;
  switch (shuffle_.kind) {
    case Shuffle::Kind::kAll:
      shuffle_all(pass);
      break;
    case Shuffle::Kind::kBuffer:
      shuffle_buffer(pass);
      break;
    case Shuffle::Kind::kNone:
      std::iota(order_.begin(), order_.end(), 0U);
      break;
  }
  made_ = pass;
  return order_;
}

void EpochOrder::shuffle_all(int64_t pass) {
  base::Sequence random(seed_, kShuffleStream, static_cast<uint64_t>(pass));
  std::iota(order_.begin(), order_.end(), 0U);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(static_cast<uint32_t>(i))]);
}

/// The window holds the examples read but not yet returned. Each step returns one of it and reads the next.
void EpochOrder::shuffle_buffer(int64_t pass) {
  base::Sequence random(seed_, kShuffleStream, static_cast<uint64_t>(pass));
  std::iota(window_.begin(), window_.end(), 0U);
  auto read = static_cast<uint32_t>(window_.size());
  uint32_t held = read;
  for (uint32_t& out : order_) {
    uint32_t& slot = window_[random.below(held)];
    out = slot;
    if (read < order_.size()) {
      slot = read++;
    } else {
      slot = window_[--held];
    }
  }
}

}  // namespace lockstep::data
