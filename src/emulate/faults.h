// Scheduled faults, as --faults takes them: "at 30s kill worker:1; at 60s cut node2 for 10s; at 90s slow node3 to 25%".
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::emulate {

struct Fault {
  enum class Kind : uint8_t {
    kill,  ///< SIGKILL to a role, which its supervisor restarts
    stop,  ///< SIGSTOP, and SIGCONT after `seconds`
    cut,   ///< takes a node's link down for `seconds`
    slow   ///< sets a node's CPU to `share` of its own, for `seconds` or to the end
  };
  double at = 0;  ///< seconds since all roles were started
  Kind kind = Kind::kill;
  std::string target;  ///< "worker:1", "node2"
  double seconds = 0;  ///< 0: no end
  double share = 1;

  [[nodiscard]] std::string text() const;  ///< "cut node2 for 10s"
};

/// Parses faults and sorts them by time. Throws UsageError naming the piece, the word seen and the allowed ones.
std::vector<Fault> parse_faults(const std::string& text);

}  // namespace lockstep::emulate
