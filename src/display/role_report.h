// What a role reports under a launcher: one JSON object per line of its standard output. Any key may be absent, of
// another type, or odd; what cannot be read is as if it were not there.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train_events.h"

namespace lockstep::display {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Report {
  enum class Event : uint8_t { status, log, eval, end, other };
  Event event = Event::other;
  std::string role;  ///< as the role calls itself
  std::string state;
  std::string level;
  std::string text;
  double step = kUnknown;
  double steps = kUnknown;  ///< to do in all
  double epoch = kUnknown;
  double epochs = kUnknown;
  double examples_per_s = kUnknown;
  double loss = kUnknown;
  double accuracy = kUnknown;
  double staleness = kUnknown;
  double wait_share = kUnknown;
  train::PhaseSeconds phases = {};  ///< shares of its time
  bool best = false;
};

/// Nothing where the line is no report.
std::optional<Report> parse_report(const std::string& line);

/// How a worker did, from the list `workers` of a run's summary.json.
struct WorkerResult {
  std::string role;
  double iterations = kUnknown;
  double examples = kUnknown;
  double finished_seconds = kUnknown;
  double staleness_mean = kUnknown;
  double staleness_max = kUnknown;
  double wait_share = kUnknown;
  double dropped = kUnknown;
  double accuracy = kUnknown;
};
std::vector<WorkerResult> parse_workers(const std::string& summary_json);

}  // namespace lockstep::display
