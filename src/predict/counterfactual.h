// What a step would take if one thing were free, or different: the answers behind `lockstep why` and the limits that
// `lockstep plan` names. Each is a training with that one thing changed, simulated again. Free functions; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "predict/simulate.h"
#include "predict/training.h"

namespace lockstep::predict {

/// Things that a step spends time on.
enum class Resource : uint8_t {
  network,     ///< links: rates and delays
  servers,     ///< the servers' processors
  messages,    ///< the workers' work on messages, and waking up for them
  compute,     ///< forward, backward, optimizer
  cores,       ///< quotas and shared cores of the workers' nodes: as if each had a processor per thread
  programs,    ///< other programs on the nodes
  data,        ///< making batches
  evaluation,  ///< by the chief
  checkpoint,
  stragglers,  ///< workers that differ: as if each were like the better half
  unevenness,  ///< steps of one worker that differ
  rest         ///< logs and displays
};
std::string_view name(Resource resource);
const std::vector<Resource>& all_resources();

/// Returns the training with the resource free.
Training without(Training training, Resource resource);

struct Effect {
  Resource resource = Resource::compute;
  double step = 0;   ///< with the resource free
  double saved = 0;  ///< share of the step, 0 to 1
};

/// Returns the effects of all resources, the largest first. `measured`: what the training takes as it is.
std::vector<Effect> effects(const Training& training, const Prediction& measured,
                            const SimulationOptions& options = {});

}  // namespace lockstep::predict
