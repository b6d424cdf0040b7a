// What members tell each other with every step: a few floats that travel with the last bucket and are added up like
// gradients, so that one operation tells everyone the same. Plain values; free of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exchange/exchange.h"
#include "lockstep/run_types.h"

namespace lockstep::allreduce {

/// Of one member, in seconds; those of the exchange are of the step before.
struct StepTimes {
  float load = 0;        ///< waiting for data
  float compute = 0;     ///< everything else until it came to the exchange
  float wait = 0;        ///< in the exchange, when there was nothing left to compute
  float transfer = 0;    ///< in operations of the group, also while it computed
  float examples = 0;    ///< of this step
  float came = 0;        ///< to the exchange, since it left the one before: load, compute and what it did aside
  int64_t entered = 0;   ///< the exchange, in nanoseconds since 1970 by its clock; 0: it does not say
  int64_t left = 0;      ///< the group's operations of the step before, likewise
  uint32_t machine = 0;  ///< base::machine_number(), where it says these times
};

/// What one member says.
struct Note {
  exchange::BatchReport report;
  train::StopReason stop = train::StopReason::none;  ///< it ends: nobody applies this step
  bool regroup = false;                              ///< someone waits to get in
  StepTimes times;
};

/// What all have said.
struct Notes {
  exchange::BatchReport report;
  train::StopReason stop = train::StopReason::none;  ///< the one that counts most
  int stopped_by = -1;                               ///< the first rank that says so
  int contributors = 0;                              ///< members with examples
  bool regroup = false;
  std::vector<StepTimes> times;  ///< by rank
};

/// Floats that the notes of a group take.
size_t notes_size(int members);
void write_note(const Note& note, int rank, std::span<float> to);
/// Allocates only where `notes` has held fewer members before.
void read_notes(std::span<const float> from, int members, Notes& notes);

}  // namespace lockstep::allreduce
