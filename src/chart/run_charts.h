// Charts of one run or of several beside each other, from what they recorded. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chart/chart.h"
#include "records/run_record.h"

namespace lockstep::chart {

/// Of a series; longer ones lose points between their peaks.
constexpr size_t kMostPoints = 400;

enum class Over : uint8_t { step, epoch, seconds };
Axis axis_of(Over over);
/// What a curve's y is called: "accuracy" -> "Accuracy on test data".
Axis curve_axis(std::string_view y);

/// Of several runs, each a series of its name: y is "loss", "accuracy" (of evaluations) or "train_loss".
Chart curves(const std::vector<const records::RunRecord*>& runs, const std::string& y, Over over);
/// A column of the monitor over time, a series for each role (or node); only of these roles, where some are named.
Chart usage(const records::RunRecord& run, const std::string& column, const std::vector<std::string>& roles = {});
/// Where the time of each role's steps went: a stack per role.
Chart phases(const records::RunRecord& run);
/// From when to when each role worked, with the faults of the run as marks.
Chart timeline(const records::RunRecord& run);

// What these are made of.

/// A curve of a role with all its points; that of the run is its chief's, evaluations may be the evaluator's.
records::Curve curve(const records::RunRecord& run, const records::RoleRecord& role, std::string_view y, Over over);
records::Curve curve(const records::RunRecord& run, std::string_view y, Over over);
/// When the run began: seconds since 1970 as its monitors say; NaN where they say nothing.
double beginning(const records::RunRecord& run);
/// The colours of what roles do, for timelines.
std::vector<Series> span_colors();
/// What was broken on purpose, and when.
std::vector<Mark> faults(const records::RunRecord& run);

}  // namespace lockstep::chart
