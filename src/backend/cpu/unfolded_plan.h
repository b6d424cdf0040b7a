// The plan that turns a convolution of the graph into a 3x3 convolution of stride 1 over more channels
// (kernels/unfold.h).
#pragma once

#include <optional>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels/unfold.h"
#include "lockstep/graph.h"

namespace lockstep::backend::cpu {

/// A convolution of the graph and its replacement: a convolution of stride 1 with channel-blocked images.
struct UnfoldedPlan {
  Unfold unfold;
  graph::Window window;
  Shape weights;  ///< unfolded
  int64_t batch = 1;
  int64_t out_channels = 1;
  Shape dst;  ///< shape for the whole batch
  graph::Layout layout;
  bool winograd = false;  ///< true if Winograd's algorithm should compute it
};

/// Returns true if Winograd's algorithm beats the direct sum for a convolution with result `dst`.
bool winograd_pays(const graph::Window& window, const Shape& dst);

/// Returns nullopt if the convolution cannot be unfolded, or nothing would change.
std::optional<UnfoldedPlan> unfolded_plan(const graph::Window& window, const graph::Output& src,
                                          const graph::Output& dst, const CpuOptions& options);

}  // namespace lockstep::backend::cpu
