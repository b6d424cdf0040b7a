// summary.json: how a run ended, for people and for the lab. Free functions.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/train.h"
#include "train/settings.h"

namespace lockstep::train {

struct Summary {
  Settings settings;
  Outcome outcome;
  std::string error;    ///< what ended it, where it was an error
  int64_t started = 0;  ///< seconds since 1970
  int64_t ended = 0;
  int threads = 1;
  std::string wait_policy;  ///< "brief", "spin" or "block"
  std::string isa;
};

/// The JSON text. Numbers that are not known (no evaluation yet, not finite) are null.
std::string to_json(const Summary& summary);

}  // namespace lockstep::train
