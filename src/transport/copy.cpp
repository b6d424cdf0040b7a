#include "transport/copy.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transport/copy.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::transport {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Copies whole vectors at aligned addresses of `to`. Returns the number of bytes copied.
size_t stream_vectors(const uint8_t* from, uint8_t* to, size_t size) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t at = 0;
  for (; at + 4 * lanes <= size; at += 4 * lanes) {
    const auto a = hn::LoadU(d, from + at);
    const auto b = hn::LoadU(d, from + at + lanes);
    const auto c = hn::LoadU(d, from + at + 2 * lanes);
    const auto e = hn::LoadU(d, from + at + 3 * lanes);
    hn::Stream(a, d, to + at);
    hn::Stream(b, d, to + at + lanes);
    hn::Stream(c, d, to + at + 2 * lanes);
    hn::Stream(e, d, to + at + 3 * lanes);
  }
  hwy::FlushStream();
  return at;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::transport
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::transport {

HWY_EXPORT(stream_vectors);

void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  if (to.empty()) return;
  constexpr size_t kLine = 64;
  const size_t misaligned = reinterpret_cast<uintptr_t>(to.data()) % kLine;
  const size_t first = std::min(to.size(), misaligned == 0 ? 0 : kLine - misaligned);
  std::memcpy(to.data(), from.data(), first);
  const auto* source = reinterpret_cast<const uint8_t*>(from.data()) + first;
  auto* target = reinterpret_cast<uint8_t*>(to.data()) + first;
  const size_t rest = to.size() - first;
  const size_t done = HWY_DYNAMIC_DISPATCH(stream_vectors)(source, target, rest);
  std::memcpy(target + done, source + done, rest - done);
}

}  // namespace lockstep::transport
#endif  // HWY_ONCE
