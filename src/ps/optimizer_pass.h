// The optimizer's pass over one block of a shard: from one version into another, or in place. Stateless, any thread;
// the spans belong to the caller.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace lockstep::ps {

constexpr size_t kMostSlots = 2;

/// A block of a version: parameters and the optimizer's slots in its order.
struct VersionSpans {
  std::span<float> parameters;
  std::array<std::span<float>, kMostSlots> slots;
};

/// Names of the optimizer's state. Throws UsageError for settings out of range.
std::vector<std::string> slot_names_of(const optim::OptimizerSettings& settings);

void update_version(const optim::OptimizerSettings& settings, const VersionSpans& from, const VersionSpans& to,
                    std::span<const float> gradient, const optim::Update& update);

/// The same over itself. Several threads may do this to the same block at once: updates of single elements may then get
/// lost, which is what lock-free means. A function of its own so that the thread sanitizer can be told.
void update_in_place(const optim::OptimizerSettings& settings, const VersionSpans& block,
                     std::span<const float> gradient, const optim::Update& update);

}  // namespace lockstep::ps
