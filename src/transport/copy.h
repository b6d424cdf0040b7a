// Copying large payloads to their place.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::transport {

/// memcpy for memory that will not be read again while it could still be in a cache: the stores go past the caches, at
/// half the cost of ordinary ones. The two do not overlap and are of one size.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace lockstep::transport
