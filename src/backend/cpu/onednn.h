// What the oneDNN kernels share: engine and stream, memory descriptors for our layouts, and one kernel class that
// runs a primitive with reorders of its weights around it.
#pragma once

#include <dnnl.hpp>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

/// The graph's layout of a 4-dimensional tensor in oneDNN's words.
dnnl::memory::desc describe(const Shape& shape, const graph::Layout& layout);
dnnl::memory::dims dims_of(const Shape& shape);

/// Engine and stream of one kernel; cheap handles on oneDNN's one CPU device.
struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  [[nodiscard]] dnnl::memory unbound(const dnnl::memory::desc& desc) const { return {desc, engine, nullptr}; }
};

}  // namespace lockstep::backend::cpu
