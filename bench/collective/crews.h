// Groups of each engine for the benchmark: ranks as processes where the engine joins processes, as threads where it
// joins threads. To add an engine: a line in `crews`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collective/collective.h"

namespace lockstep::bench {

using Work = std::function<void(collective::Collective&)>;

struct Crew {
  std::string engine;
  /// Runs the work at `size` ranks; that of rank 0 in this process, which has no other threads meanwhile.
  std::function<void(int size, const collective::GroupOptions&, const Work&)> run;
};

const std::vector<Crew>& crews();

}  // namespace lockstep::bench
