// Plays many histories of a simulated cluster, and reports the first one that fails: its seed, as few faults as it
// takes, and what happened. Every test program here takes --histories=N and --seed=N, which a failure prints, and
// --lines=N: how much of the history.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulation/faults.h"
#include "simulation/world.h"

namespace lockstep::simulation {

/// How a history ended.
struct Played {
  std::string failure;  ///< empty: all is well
  uint64_t digest = 0;
  uint64_t events = 0;
  std::vector<std::string> history;  ///< if it was recorded
};
/// Returns what a world has played.
Played played(const World& world);

/// A kind of cluster with its faults.
struct Suite {
  std::string name;
  /// Returns the faults of a seed.
  std::function<std::vector<Fault>(uint64_t seed)> plan;
  /// Plays a history to its end; the same seed and faults must always give the same history.
  std::function<Played(uint64_t seed, const std::vector<Fault>& faults, bool record)> play;
};

struct Explored {
  uint64_t histories = 0;
  uint64_t events = 0;
  std::optional<uint64_t> failed;  ///< seed of the first history that failed
  std::string report;              ///< about it
};

/// Plays histories with the seeds from `seed` on, until one fails.
Explored explore(const Suite& suite, uint64_t seed, uint64_t histories);

/// The histories to play: as the command line says, or this many from seed 1.
struct Choice {
  uint64_t seed = 1;
  uint64_t histories = 0;
};
Choice choice(uint64_t histories);
/// Returns the number after --NAME= in the command line, or `otherwise`.
uint64_t number_of_flag(const std::string& name, uint64_t otherwise);

}  // namespace lockstep::simulation
