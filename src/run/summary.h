// summary.json: how a run ended, for people and for the lab. Free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "checkpoint/training_state.h"
#include "lockstep/train.h"
#include "observe/monitor/resource_monitor.h"
#include "settings/settings.h"

namespace lockstep::run {

struct Summary {
  settings::Settings settings;
  std::string role;  ///< who wrote it, of a cluster
  train::Outcome outcome;
  std::string error;    ///< what ended it, where it was an error
  int64_t started = 0;  ///< seconds since 1970
  int64_t ended = 0;
  int threads = 1;
  std::string wait_policy;  ///< "brief", "spin" or "block"
  std::string isa;
  std::optional<observe::ResourceSummary> resources;
};

/// What a role that does not train leaves behind.
struct RoleSummary {
  std::string role;  ///< "ps:0"
  double seconds = 0;
  std::vector<std::pair<std::string, uint64_t>> counts;
  std::vector<base::DurationRecord> phases;
  std::optional<observe::ResourceSummary> resources;
};
std::string to_json(const RoleSummary& summary);

/// How a training that is at `state` has gone; what only its session knows is left out.
train::Outcome outcome_of(const checkpoint::TrainingState& state, train::StopReason reason, bool has_accuracy);

/// The JSON text. Numbers that are not known (no evaluation yet, not finite) are null.
std::string to_json(const Summary& summary);

}  // namespace lockstep::run
