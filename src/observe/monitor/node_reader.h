// What a node has used so far, all its processes together. For one thread.
#pragma once

#include <optional>
#include <vector>

#include "observe/monitor/proc_file.h"
#include "observe/monitor/proc_text.h"

namespace lockstep::observe {

struct NodeTotals {
  std::optional<NodeStat> stat;
  std::optional<uint64_t> memory_used;
  std::optional<DiskBytes> disks;
  std::vector<InterfaceCounters> interfaces;
};

class NodeReader {
 public:
  NodeTotals read();

 private:
  ProcFile stat_{"/proc/stat"};
  ProcFile memory_{"/proc/meminfo"};
  ProcFile disks_{"/proc/diskstats"};
  ProcFile network_{"/proc/self/net/dev"};  ///< of the namespace that this process is in
};

}  // namespace lockstep::observe
