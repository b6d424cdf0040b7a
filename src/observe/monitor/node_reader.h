// What a node has used so far, all its processes together. For one thread.
#pragma once

#include <optional>
#include <vector>

#include "base/host.h"
#include "observe/monitor/proc_file.h"
#include "observe/monitor/proc_text.h"

namespace lockstep::observe {

struct NodeTotals {
  std::optional<NodeStat> stat;
  bool emulated = false;  ///< of a part of the machine: what only the whole has is not known
  std::optional<uint64_t> memory_used;
  std::optional<DiskBytes> disks;
  std::vector<InterfaceCounters> interfaces;
};

/// An emulated node, by its control group.
class GroupReader {
 public:
  explicit GroupReader(const base::OwnNode& node);

  [[nodiscard]] std::optional<NodeStat> stat();  ///< in nanoseconds; what was not used of its cores was idle
  [[nodiscard]] std::optional<uint64_t> memory_used();

 private:
  /// Nanoseconds of CPU.
  struct Used {
    uint64_t all = 0;
    uint64_t user = 0;
    uint64_t system = 0;
  };
  std::optional<Used> used();

  double cores_;
  Used before_;
  uint64_t user_part_ = 0;  ///< of `before_.all`
  ProcFile usage_;
  ProcFile user_;
  ProcFile system_;
  ProcFile cpu_stat_;
  ProcFile memory_;
  ProcFile memory_stat_;
};

class NodeReader {
 public:
  NodeReader();
  NodeTotals read();

 private:
  std::optional<GroupReader> group_;  ///< where this process is on an emulated node
  ProcFile stat_{"/proc/stat"};
  ProcFile memory_{"/proc/meminfo"};
  ProcFile disks_{"/proc/diskstats"};
  ProcFile network_{"/proc/self/net/dev"};  ///< of the namespace that this process is in
};

}  // namespace lockstep::observe
