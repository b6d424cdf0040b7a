#include "observe/monitor/node_reader.h"

namespace lockstep::observe {

NodeTotals NodeReader::read() {
  NodeTotals totals;
  totals.stat = parse_node_stat(stat_.read());
  totals.memory_used = parse_memory_used(memory_.read());
  totals.disks = parse_disks(disks_.read());
  totals.interfaces = parse_interfaces(network_.read());
  return totals;
}

}  // namespace lockstep::observe
