// summary.json: how a run ended, for people and for the lab. Free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "checkpoint/training_state.h"
#include "lockstep/train_events.h"
#include "observe/monitor/resource_monitor.h"
#include "settings/settings.h"

namespace lockstep::run {

struct Summary {
  settings::Settings settings;
  std::string role;  ///< role of the writer, in a cluster
  train::Outcome outcome;
  std::string error;    ///< the error that ended the run, if any
  int64_t started = 0;  ///< seconds since 1970
  int64_t ended = 0;
  int threads = 1;
  std::string wait_policy;  ///< "brief", "spin" or "block"
  std::string isa;
  std::optional<observe::ResourceSummary> resources;
};

/// The summary of a role that does not train.
struct RoleSummary {
  std::string role;  ///< "ps:0"
  double seconds = 0;
  std::vector<std::pair<std::string, uint64_t>> counts;
  std::vector<base::DurationRecord> phases;
  std::optional<observe::ResourceSummary> resources;
};
std::string to_json(const RoleSummary& summary);

/// Returns the outcome of a training in this state, without the parts that only its session knows.
train::Outcome outcome_of(const checkpoint::TrainingState& state, train::StopReason reason, bool has_accuracy);

/// Sets the peak memory, and the role that had it, to those of a summary.json; to 0 if they cannot be read.
void take_recorded_memory(const std::string& summary_file, train::Outcome& outcome);

/// Returns the JSON text. Unknown numbers (no evaluation yet, not finite) are null.
std::string to_json(const Summary& summary);

}  // namespace lockstep::run
