// A role's reports to its launcher: one JSON object per line of its standard output. Any key may be absent or of
// another type; a value that cannot be read counts as absent.
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
  enum class Event : uint8_t { status, log, eval, end, resumed, other };
  Event event = Event::other;
  std::string role;  ///< name of the role, as it reports it
  std::string state;
  std::string level;
  std::string text;
  double step = kUnknown;
  double steps = kUnknown;  ///< steps of the whole training
  double epoch = kUnknown;
  double epochs = kUnknown;
  double seconds = kUnknown;  ///< training time of the role
  double examples_per_s = kUnknown;
  double examples = kUnknown;  ///< status: examples behind its loss and accuracy
  double loss = kUnknown;      ///< status: of the training since the status before; eval: of the evaluation
  double accuracy = kUnknown;
  double train_loss = kUnknown;  ///< eval: of the training since the evaluation before
  double train_accuracy = kUnknown;
  double staleness = kUnknown;
  double wait_share = kUnknown;
  train::PhaseSeconds phases = {};  ///< shares of the role's time
  bool best = false;
};

/// Returns nothing if the line is not a report.
std::optional<Report> parse_report(const std::string& line);

/// Results of a worker, from the list `workers` of a run's summary.json.
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
  double restarts = kUnknown;
};
std::vector<WorkerResult> parse_workers(const std::string& summary_json);

}  // namespace lockstep::display
