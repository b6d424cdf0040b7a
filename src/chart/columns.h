// Names of monitor.csv columns and of step phases in charts. Constant tables; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chart {

struct ColumnText {
  std::string title;
  std::string unit;      ///< as Axis::unit
  bool of_node = false;  ///< all roles of a node have the same values
};

/// Returns the title of a monitor column; a column that is not in the table keeps its own name.
ColumnText column_text(std::string_view column);

/// Phases drawn as one part of a stack.
struct PhasePart {
  std::string_view title;
  int color = 0;
  std::vector<std::string_view> phases;  ///< names in phases.csv, or in a server's summary
};
const std::vector<PhasePart>& phase_parts();

}  // namespace lockstep::chart
