// Options of a parameter server.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "base/tracer.h"
#include "base/traffic_meter.h"
#include "cluster/spec.h"
#include "ps/parameter_shard.h"
#include "ps/server_link.h"
#include "transport/stream.h"

namespace lockstep::ps {

struct ServerOptions {
  int index = 0;  ///< index i of ps:i
  cluster::Spec spec;
  transport::Security security;
  std::string folder;  ///< folder of this role, for its state
  Durability durability = Durability::process;
  std::string job;  ///< digest of the settings that all roles must agree on
  std::string run;  ///< the run's name; the others learn it from ps:0
  int threads = 1;
  std::chrono::microseconds spin{0};  ///< time that waits for a frame poll before they sleep
  double patience = 600;
  bool resumed = false;        ///< drop a state of other settings: training resumes from a checkpoint
  bool contributions = false;  ///< ps:0 records the parts of each version (contributions.h)
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;  ///< counts the traffic of all its connections; borrowed
  base::Tracer* tracer = nullptr;       ///< records the pushes that workers trace; may be absent
  std::function<void()> at_update =
      {};  ///< for tests: called before each update is applied, with no lock held; the maker makes all
};

}  // namespace lockstep::ps
