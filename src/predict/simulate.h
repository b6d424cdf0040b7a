// Plays the steps of a training: a discrete-event simulation of computing, links and servers. The same training and
// options give the same prediction. Plain values; free functions; any thread.
//
//   events.h         the clock
//   node_cpu.h       processors, quotas, other programs
//   network.h        links
//   step_parts.h     what a step computes and sends, as src/schedule decides it
//   exchange.h       the exchange: none, servers (servers_exchange.cpp), all-reduce (all_reduce_exchange.cpp)
#pragma once

#include <string>
#include <vector>

#include "predict/training.h"

namespace lockstep::predict {

struct SimulationOptions {
  int steps = 40;      ///< of each worker; a quarter more come before them and are not counted
  bool spans = false;  ///< true: records what happens when, for a trace
};

/// Means of a worker's steps, with the names that a run's phases have.
struct WorkerTimes {
  double data = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double push = 0;
  double pull = 0;
  double transfer = 0;
  double others = 0;
  double evaluation = 0;
  double checkpoint = 0;
  double rest = 0;
  double messages = 0;  ///< CPU time for messages, which is part of the exchange

  [[nodiscard]] double compute() const { return forward + backward + optimizer; }
  [[nodiscard]] double exchange() const { return push + pull + transfer; }
  [[nodiscard]] double all() const { return data + compute() + exchange() + others + evaluation + checkpoint + rest; }
};

struct NodeLoad {
  double cpu = 0;     ///< share of its cores, 0 to 1
  double paused = 0;  ///< share of the time in which its quota was used up
  double in = 0;      ///< payload bytes per second over its link
  double out = 0;
  double link = 0;  ///< share of its link's rate, of the fuller direction
};

/// Something that took time, for a trace.
struct Span {
  std::string track;  ///< "worker:0", "ps:0"
  std::string name;   ///< "forward"
  double begin = 0;
  double end = 0;
};

struct Prediction {
  double step = 0;  ///< seconds of a worker's step, evaluations and checkpoints included; sync: of an update
  double updates_per_second = 0;
  double examples_per_second = 0;
  double dropped = 0;    ///< share of the gradients that came too late
  double staleness = 0;  ///< async: mean number of updates between reading parameters and applying the gradient
  double sent = 0;       ///< payload bytes that a worker sends in a step; it receives as many
  std::vector<WorkerTimes> workers;
  std::vector<NodeLoad> nodes;
  std::vector<double> servers;  ///< cores that each server keeps busy
  std::vector<Span> spans;      ///< of the last steps, on one time axis
  uint64_t events = 0;

  /// Returns the means over the workers.
  [[nodiscard]] WorkerTimes mean() const;
};

/// Throws UsageError for a training that cannot be (training.h).
Prediction simulate(const Training& training, const SimulationOptions& options = {});

}  // namespace lockstep::predict
