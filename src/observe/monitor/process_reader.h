// Resources that a process has used so far, alone or with its descendants. For one thread.
//
// A descendant stays known from the first reading that finds it, even after its parent ends. The use of children that
// ended and were waited for is part of their parents' figures, so totals do not decrease. A process that starts, leaves
// its tree (its parent ends) and ends between two readings is missed.
#pragma once

#include <sys/types.h>

#include <limits>
#include <memory>

namespace lockstep::observe {

/// Totals since the process began; NaN: not available.
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

/// Reads this process, using the finer clocks that the system keeps for it.
std::unique_ptr<ProcessReader> read_self();
/// Reads any process, with its descendants or alone.
std::unique_ptr<ProcessReader> read_process(pid_t pid, bool descendants);

}  // namespace lockstep::observe
