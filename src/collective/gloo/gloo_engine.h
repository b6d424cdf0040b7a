// Gloo over TCP: the engine of processes that know each other's addresses. Each group has a fresh context, so a broken
// group cannot disturb the next one. Calls return at once after `abort`, and when a member dies.
//
// Not encrypted: beyond one machine it needs a trusted network. Members greet each other with a token from their
// addresses. If a stranger connects in a member's place, the greeting fails, and so does the group. But until a group
// is connected, Debian's Gloo reads on its own thread. A well-formed Gloo message that no call waits for throws there,
// which ends the process. So a stranger who forges one before the greeting can stop this member.
#pragma once

#include <memory>
#include <string>

#include "collective/collective.h"

namespace lockstep::collective {

/// Makes this member's half of a group, listening on `host` (a name or address of this machine) and a free port. Throws
/// IoError if it cannot.
std::unique_ptr<Joining> join_over_gloo(const std::string& host, int rank, int size, const GroupOptions& options);

}  // namespace lockstep::collective
