// What the columns of monitor.csv and the phases of steps are called in charts. Constant tables; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chart {

struct ColumnText {
  std::string title;
  std::string unit;      ///< as Axis::unit
  bool of_node = false;  ///< all roles of a node see the same
};

/// Of a column of the monitor; what is not in the table is called by its own name.
ColumnText column_text(std::string_view column);

/// Phases that are drawn as one part of a stack.
struct PhasePart {
  std::string_view title;
  int color = 0;
  std::vector<std::string_view> phases;  ///< names of phases.csv, or of a server's summary
};
const std::vector<PhasePart>& phase_parts();

}  // namespace lockstep::chart
