// Looks at the figures that a study reported, without regard to ours: rows that are the same where they should differ,
// and figures that contradict each other or physics. The rules are few and general (docs/reports.md); each says what
// it saw, not why it came about. Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/reported.h"

namespace lockstep::report {

struct ReportedTable {
  const Reported& figures;
  Fields keys;     ///< fields that tell rows apart
  Fields columns;  ///< fields with figures
  /// Returns whether our own values of the field are all the same in the counterparts of these rows, too; nothing if
  /// fewer than two are known.
  std::function<std::optional<bool>(const std::string& field, const std::vector<size_t>& rows)> same_here = {};
};

/// Returns a sentence for each anomaly; none if the figures are plausible.
std::vector<std::string> anomalies(const ReportedTable& table);

}  // namespace lockstep::report
