// A PsExchange's view of one server; shared by the files that implement it.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock_offset.h"
#include "ps/messages.h"
#include "ps/ps_exchange.h"
#include "ps/server_link.h"

namespace lockstep::ps {

/// One server and its part of the parameters.
struct PsExchange::ServerPart {
  std::unique_ptr<ServerLink> link;
  std::vector<program::ParameterRange> ranges;
  size_t count = 0;
  uint64_t version = 0;          ///< version of the parameters received last
  std::vector<float> scattered;  ///< parameters being received for several ranges
  int index = 0;                 ///< index i of ps:i
  Clock::time_point began_last;  ///< when it began to send the last frame of the push in flight
  base::ClockOffset clock;       ///< offset of the server's clock, from traced pushes
};

inline base::Failure unexpected(const ServerLink& link, const transport::Frame& frame) {
  const std::string said =
      kind_of(frame) == Kind::refuse ? frame.text() : fmt::format("a frame of kind {}", frame.header.kind);
  return {base::FailureKind::refused, "answered with " + said, {link.name()}, link.address()};
}

}  // namespace lockstep::ps
