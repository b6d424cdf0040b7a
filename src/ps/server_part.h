// What a PsExchange knows of one server; shared by the files that implement it.
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
  uint64_t version = 0;          ///< of the parameters that came last
  uint64_t pushed_on = 0;        ///< the connection that the push under way went to; 0: it is broken
  bool sent = false;             ///< all of it
  uint64_t held_on = 0;          ///< the connection that holds the server for a snapshot; 0: none does
  std::vector<float> scattered;  ///< parameters on their way to several ranges
  int index = 0;                 ///< ps:index
  Clock::time_point began_last;  ///< to send the last frame of the push under way
  base::ClockOffset clock;       ///< the server's, as far as traced pushes have told
};

inline base::Failure unexpected(const ServerLink& link, const transport::Frame& frame) {
  const std::string said =
      kind_of(frame) == Kind::refuse ? frame.text() : fmt::format("a frame of kind {}", frame.header.kind);
  return {base::FailureKind::refused, "answered with " + said, {link.name()}, link.address()};
}

}  // namespace lockstep::ps
