#include "transport/copy.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep::transport {

void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint8_t> d;  // the least vectors of the machine are enough here
  const size_t lanes = hn::Lanes(d);
  const size_t misaligned = reinterpret_cast<uintptr_t>(to.data()) % lanes;
  size_t at = std::min(to.size(), misaligned == 0 ? 0 : lanes - misaligned);
  std::memcpy(to.data(), from.data(), at);
  const auto* source = reinterpret_cast<const uint8_t*>(from.data());
  auto* target = reinterpret_cast<uint8_t*>(to.data());
  for (; at + 4 * lanes <= to.size(); at += 4 * lanes) {
    const auto a = hn::LoadU(d, source + at);
    const auto b = hn::LoadU(d, source + at + lanes);
    const auto c = hn::LoadU(d, source + at + 2 * lanes);
    const auto e = hn::LoadU(d, source + at + 3 * lanes);
    hn::Stream(a, d, target + at);
    hn::Stream(b, d, target + at + lanes);
    hn::Stream(c, d, target + at + 2 * lanes);
    hn::Stream(e, d, target + at + 3 * lanes);
  }
  std::memcpy(to.data() + at, from.data() + at, to.size() - at);
  hwy::FlushStream();
}

}  // namespace lockstep::transport
