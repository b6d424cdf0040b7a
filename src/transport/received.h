// Turns a message from the network into a frame. Internal; separate from gRPC so that it can be fuzzed.
#pragma once

#include "transport/stream.h"

namespace lockstep::transport {

/// Makes a frame from the slices of one message, which `owner` keeps alive. Fails if the message is not a frame, or its
/// payload is larger than the limit.
base::Result<Frame> make_frame(std::span<const std::span<const std::byte>> slices, std::shared_ptr<const void> owner,
                               size_t largest_payload);

}  // namespace lockstep::transport
