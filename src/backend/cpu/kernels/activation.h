// Activations that a kernel can apply to its result before handing it on.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

enum class Activation { none, relu, tanh, sigmoid };

/// Tanh and sigmoid are applied in a second pass over values just stored; the tiles themselves apply ReLU.
inline bool is_smooth(Activation activation) {
  return activation == Activation::tanh || activation == Activation::sigmoid;
}

/// Applies tanh or sigmoid in place, on the calling thread.
void activate_smooth(Activation activation, float* values, int64_t count);

}  // namespace lockstep::backend::cpu
