// Notes that members exchange with every step: a few floats that travel with the last bucket and are summed like
// gradients, so one operation tells all members the same. Plain values; no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exchange/exchange.h"
#include "lockstep/run_types.h"

namespace lockstep::allreduce {

/// Times of one member, in seconds. Those of the exchange belong to the step before.
struct StepTimes {
  float load = 0;            ///< waiting for data
  float compute = 0;         ///< everything else before the exchange
  float wait = 0;            ///< in the exchange, with nothing left to compute
  float transfer = 0;        ///< in operations of the group, also while it computed
  float examples = 0;        ///< examples of this step
  float until_exchange = 0;  ///< time since the last exchange: load, compute, evaluations and checkpoints
  int64_t entered = 0;       ///< start of the exchange, in nanoseconds since 1970 by its clock; 0: not sent
  int64_t left = 0;          ///< end of the group's operations of the step before, likewise
  uint32_t machine = 0;      ///< base::machine_number(), if these two times are sent
};

/// One member's note.
struct Note {
  exchange::BatchReport report;
  train::StopReason stop = train::StopReason::none;  ///< it stops: no member applies this step
  bool regroup = false;                              ///< a new member waits to join
  StepTimes times;
};

/// The notes of all members.
struct Notes {
  exchange::BatchReport report;
  train::StopReason stop = train::StopReason::none;  ///< the most important reason
  int stopped_by = -1;                               ///< first rank with that reason
  int contributors = 0;                              ///< members with examples
  bool regroup = false;
  std::vector<StepTimes> times;  ///< by rank
};

/// Returns the number of floats in the notes of a group.
size_t notes_size(int members);
void write_note(const Note& note, int rank, std::span<float> to);
/// Allocates only if `notes` has never held so many members.
void read_notes(std::span<const float> from, int members, Notes& notes);

}  // namespace lockstep::allreduce
