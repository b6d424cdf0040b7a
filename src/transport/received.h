// Makes a frame of a message as it came from the network. Internal, apart from gRPC so that it can be fuzzed.
#pragma once

#include "transport/stream.h"

namespace lockstep::transport {

/// Of the slices of one message; `owner` keeps them. Fails for what is no frame or has a payload beyond the limit.
base::Result<Frame> make_frame(std::span<const std::span<const std::byte>> slices, std::shared_ptr<const void> owner,
                               size_t largest_payload);

}  // namespace lockstep::transport
