// A frame's header on the wire: 64 bytes, little-endian, with a magic number, a format version and the payload's size
// before and after the fields of Header. Pure functions. Use a peer's header only after decode_header has checked it.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.h"
#include "transport/stream.h"

namespace lockstep::transport {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode_header(const Header& header, size_t payload_bytes);

/// Decodes and checks a header. `message` is the beginning of a message of `message_bytes` bytes; it includes the whole
/// header if the message does.
base::Result<Header> decode_header(std::span<const std::byte> message, size_t message_bytes, size_t largest_payload);

}  // namespace lockstep::transport
