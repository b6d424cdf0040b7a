// Charts of one run or of several beside each other, from what they recorded. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "chart/chart.h"
#include "records/run_record.h"

namespace lockstep::chart {

enum class Over : uint8_t { step, epoch, seconds };

/// Of several runs, each a series of its name: y is "loss", "accuracy" (of evaluations) or "train_loss".
Chart curves(const std::vector<const records::RunRecord*>& runs, const std::string& y, Over over);
/// A column of the monitor over time, a series for each role (or node).
Chart usage(const records::RunRecord& run, const std::string& column);
/// Where the time of each role's steps went: a stack per role.
Chart phases(const records::RunRecord& run);
/// From when to when each role worked, with the faults of the run as marks.
Chart timeline(const records::RunRecord& run);

}  // namespace lockstep::chart
