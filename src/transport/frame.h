// How a frame's header lies on the wire: 64 bytes, little-endian, with a magic number, a format version and the size of
// the payload around the fields of Header. Pure functions; what a peer sent is believed only after decode_header.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.h"
#include "transport/stream.h"

namespace lockstep::transport {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode_header(const Header& header, size_t payload_bytes);

/// `message` is the beginning of a message of `message_bytes` bytes, at least as much of it as a header takes where
/// there is so much.
base::Result<Header> decode_header(std::span<const std::byte> message, size_t message_bytes, size_t largest_payload);

}  // namespace lockstep::transport
