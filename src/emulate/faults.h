// Faults on schedule, as --faults takes them: "at 30s kill worker:1; at 60s cut node2 for 10s; at 90s slow node3 to
// 25%". Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::emulate {

struct Fault {
  enum class Kind : uint8_t {
    kill,  ///< SIGKILL to a role; its supervisor starts it again
    stop,  ///< SIGSTOP, and SIGCONT after `seconds`
    cut,   ///< a node's link is down for `seconds`
    slow   ///< a node's CPU is `share` of its own, for `seconds` or to the end
  };
  double at = 0;  ///< seconds since all roles were started
  Kind kind = Kind::kill;
  std::string target;  ///< "worker:1", "node2"
  double seconds = 0;  ///< 0: no end
  double share = 1;

  [[nodiscard]] std::string text() const;  ///< "cut node2 for 10s"
};

/// In the order of time. Throws UsageError that names the piece, what was seen and what is allowed.
std::vector<Fault> parse_faults(const std::string& text);

}  // namespace lockstep::emulate
