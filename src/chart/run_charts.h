// Charts of one run, or of several side by side, from what they recorded. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chart/chart.h"
#include "records/run_record.h"

namespace lockstep::chart {

/// Points of a series; longer ones lose points between their peaks.
constexpr size_t kMostPoints = 400;

enum class Over : uint8_t { step, epoch, seconds, iteration };  ///< iteration: a worker's own steps
/// Parses "step", "seconds" or "iteration"; anything else is "epoch".
Over over_of(std::string_view text);
Axis axis_of(Over over);
/// Returns the axis of a curve: "accuracy" -> "Accuracy on test data".
Axis curve_axis(std::string_view y);

/// Charts several runs, a series for each, by its name: y is "loss", "accuracy" (of evaluations) or "train_loss".
Chart curves(const std::vector<const records::RunRecord*>& runs, const std::string& y, Over over);
/// Charts a monitor column over time, a series for each role (or node); only the given roles, unless `roles` is empty.
Chart usage(const records::RunRecord& run, const std::string& column, const std::vector<std::string>& roles = {});
/// Charts the time of each role's steps by phase, a stack per role.
Chart phases(const records::RunRecord& run);
/// Charts when each role worked, with the faults of the run as marks.
Chart timeline(const records::RunRecord& run);

// The parts of these charts.

/// Returns a curve of a role with all its points. The run's curve is its chief's; evaluations may be the evaluator's.
records::Curve curve(const records::RunRecord& run, const records::RoleRecord& role, std::string_view y, Over over);
records::Curve curve(const records::RunRecord& run, std::string_view y, Over over);
/// Returns when the run began, in seconds since 1970, by its monitors; NaN if they do not say.
double beginning(const records::RunRecord& run);
/// Returns the colours of a timeline's spans.
std::vector<Series> span_colors();
/// Returns the scheduled faults and their times.
std::vector<Mark> faults(const records::RunRecord& run);

}  // namespace lockstep::chart
