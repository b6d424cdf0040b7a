// Shares out a machine's CPU time between a run and everything else: other programs, and the host of a virtual machine.
// HostTally is pure arithmetic over looks; HostWatch reads this machine. A run is this process with its descendants.
// For one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "observe/monitor/proc_text.h"

namespace lockstep::observe {

/// One look at the machine.
struct HostLook {
  double seconds = 0;            ///< a steady clock
  std::optional<NodeStat> stat;  ///< totals of all cores, in ticks
  double own_seconds = 0;        ///< CPU time of the run so far
};

/// Use of the machine between the first and the last look, in seconds of one core.
struct HostUse {
  double seconds = 0;  ///< wall time; 0: nothing is known
  double cores = 0;    ///< cores that the run may use
  double own = 0;
  double others = 0;  ///< by other programs, without interrupts and beyond the cores that the run may not use
  double stolen = 0;  ///< by the host of a virtual machine
  double missed = 0;  ///< promised to the run's nodes, but used by others while the machine had no idle time
};

class HostTally {
 public:
  struct Machine {
    double cores = 1;      ///< of the machine
    double available = 1;  ///< of these, those that the run may use
    double ticks = 100;    ///< per second
  };
  /// `promised`: cores that the run's nodes may use together; 0: none are promised.
  HostTally(Machine machine, double promised) : machine_(machine), promised_(promised) {}

  void look(const HostLook& now);
  [[nodiscard]] HostUse use() const;

 private:
  Machine machine_;
  double promised_;
  std::optional<HostLook> before_;
  HostUse sum_;
};

class HostWatch {
 public:
  explicit HostWatch(double promised);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  /// Looks at the machine, at most twice a second unless it `must`.
  void look(bool must = false);
  [[nodiscard]] HostUse use() const;

 private:
  struct Readers;
  std::unique_ptr<Readers> readers_;
  HostTally tally_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace lockstep::observe
