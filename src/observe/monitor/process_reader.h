// What a process has used so far, alone or with its descendants. For one thread.
//
// Descendants are known from the first look that finds them on, also when their parent ends. What children used that
// ended and were waited for is in their parents' figures, so totals do not go back; a process that is born, leaves its
// tree (its parent ends) and ends between two looks is never seen.
#pragma once

#include <sys/types.h>

#include <limits>
#include <memory>

namespace lockstep::observe {

/// Totals since it began; NaN: not to be had.
struct ProcessTotals {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  double user_seconds = kNone;
  double system_seconds = kNone;
  double rss_bytes = kNone;
  double peak_rss_bytes = kNone;
  double minor_faults = kNone;
  double major_faults = kNone;
  double voluntary_switches = kNone;
  double involuntary_switches = kNone;
  double threads = kNone;
  double read_bytes = kNone;
  double written_bytes = kNone;
};

class ProcessReader {
 public:
  virtual ~ProcessReader() = default;
  virtual ProcessTotals read() = 0;
};

/// This process, by the finer clocks that the system keeps for it.
std::unique_ptr<ProcessReader> read_self();
/// Any process, with its descendants or alone.
std::unique_ptr<ProcessReader> read_process(pid_t pid, bool descendants);

}  // namespace lockstep::observe
