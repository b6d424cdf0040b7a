// Conversions from the graph's types to the kernels' types.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/window.h"
#include "lockstep/graph.h"

namespace lockstep::backend::cpu {

inline Activation convert(graph::Activation activation) {
  switch (activation) {
    case graph::Activation::none:
      return Activation::none;
    case graph::Activation::relu:
      return Activation::relu;
    case graph::Activation::tanh:
      return Activation::tanh;
    case graph::Activation::sigmoid:
      return Activation::sigmoid;
  }
  return Activation::none;
}

inline Window2d convert(const graph::Window& w) {
  return {w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
}

}  // namespace lockstep::backend::cpu
