// Copies large payloads to their place.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::transport {

/// Copies memory that is not read again while a cache could still hold it. The stores bypass the caches and cost half
/// as much as ordinary ones. The two spans do not overlap and are of one size.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace lockstep::transport
