// Activations that a kernel can apply to its result.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

enum class Activation { none, relu, tanh, sigmoid };

/// Returns true for tanh and sigmoid, which a second pass applies to values just stored. The tiles themselves apply
/// ReLU.
inline bool is_smooth(Activation activation) {
  return activation == Activation::tanh || activation == Activation::sigmoid;
}

/// Applies tanh or sigmoid in place, on the calling thread.
void activate_smooth(Activation activation, float* values, int64_t count);

}  // namespace lockstep::backend::cpu
