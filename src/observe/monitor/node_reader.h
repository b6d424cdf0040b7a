// Resources that a node has used so far, all its processes together. For one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/host.h"
#include "observe/monitor/proc_file.h"
#include "observe/monitor/proc_text.h"

namespace lockstep::observe {

struct NodeTotals {
  std::optional<NodeStat> stat;
  bool emulated = false;  ///< a part of the machine: figures known only for the whole machine are missing
  std::optional<uint64_t> memory_used;
  std::optional<DiskBytes> disks;
  std::vector<InterfaceCounters> interfaces;
};

/// Reads an emulated node through its control group.
class GroupReader {
 public:
  explicit GroupReader(const base::OwnNode& node);

  [[nodiscard]] std::optional<NodeStat> stat();  ///< in nanoseconds; the unused time of its cores is idle time
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
  uint64_t user_part_ = 0;  ///< part of `before_.all`
  ProcFile usage_;
  ProcFile user_;
  ProcFile system_;
  ProcFile cpu_stat_;
  ProcFile memory_;
  ProcFile memory_stat_;
};

/// Adds up what the processes of a control group read from disks and wrote, also those that have ended since.
class GroupDisks {
 public:
  /// An empty folder has no processes.
  explicit GroupDisks(std::string folder) : folder_(std::move(folder)) {}
  [[nodiscard]] std::optional<DiskBytes> read();

 private:
  std::string folder_;
  std::map<int, DiskBytes> seen_;  ///< by process
  DiskBytes total_;
};

class NodeReader {
 public:
  NodeReader();
  NodeTotals read();

 private:
  std::optional<GroupReader> group_;  ///< if this process is on an emulated node
  std::optional<GroupDisks> group_disks_;
  ProcFile stat_{"/proc/stat"};
  ProcFile memory_{"/proc/meminfo"};
  ProcFile disks_{"/proc/diskstats"};
  ProcFile network_{"/proc/self/net/dev"};  ///< counters of this process's network namespace
};

}  // namespace lockstep::observe
