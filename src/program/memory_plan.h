// The memory of every value of an optimised graph. Values whose lifetimes do not overlap share memory in one arena.
// Gradients lie in the gradient buffer, parameters in the parameter buffer, inputs in the caller's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "program/passes.h"

namespace lockstep::program {

enum class Place : uint8_t { none, arena, parameters, gradients, input };

struct ValuePlace {
  Place place = Place::none;
  size_t offset = 0;  ///< bytes; for inputs, the number of the input
};

/// Bytes that a kernel wants besides its operands.
struct KernelMemory {
  size_t workspace = 0;
  size_t state = 0;
};

struct MemoryPlan {
  std::vector<std::vector<ValuePlace>> values;  ///< [node][output]
  std::vector<size_t> state_offsets;            ///< per node, in the arena
  std::vector<size_t> workspace_offsets;  ///< per node, in the arena; shared with values that are dead at that time
  size_t arena_bytes = 0;
  size_t unshared_bytes = 0;  ///< size of the arena without reuse
};

/// Returns true for nodes that need no kernel because their output is their input's memory.
bool is_alias(const graph::Graph& graph, const graph::Node& node);
/// Finds nodes whose value is the same at every step; they are computed once and kept. Gradients are never among them,
/// since other code may write to their buffer.
std::vector<bool> find_constants(const Work& work);

MemoryPlan plan_memory(const Work& work, const std::vector<KernelMemory>& kernels);

}  // namespace lockstep::program
