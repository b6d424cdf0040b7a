// The scalar arithmetic of the elementwise ops: one small function each. Every backend follows this definition.
#pragma once

#include <algorithm>
#include <cmath>

#include "lockstep/graph.h"

namespace lockstep::backend {

inline float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }
inline float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x))); }

/// Ops of one argument; `alpha` is the constant of scale and add_scalar.
inline float unary_value(graph::Op op, float x, float alpha) {
  using graph::Op;
  switch (op) {
    case Op::relu:
      return x > 0.0F ? x : 0.0F;
    case Op::tanh:
      return std::tanh(x);
    case Op::sigmoid:
      return sigmoid(x);
    case Op::softplus:
      return softplus(x);
    case Op::exp:
      return std::exp(x);
    case Op::log:
      return std::log(x);
    case Op::sqrt:
      return std::sqrt(x);
    case Op::square:
      return x * x;
    case Op::neg:
      return -x;
    case Op::abs:
      return std::fabs(x);
    case Op::scale:
      return x * alpha;
    case Op::add_scalar:
      return x + alpha;
    default:
      return x;
  }
}

/// Ops of two arguments. For gradients, `a` is the saved value and `b` the incoming gradient.
inline float binary_value(graph::Op op, float a, float b) {
  using graph::Op;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::maximum:
      return a >= b ? a : b;
    case Op::minimum:
      return a <= b ? a : b;
    case Op::relu_grad:
      return a > 0.0F ? b : 0.0F;
    case Op::tanh_grad:
      return b * (1.0F - a * a);
    case Op::sigmoid_grad:
      return b * a * (1.0F - a);
    case Op::softplus_grad:
      return b * sigmoid(a);
    case Op::abs_grad:
      return a > 0.0F ? b : (a < 0.0F ? -b : 0.0F);
    default:
      return b;
  }
}

inline float activate(graph::Activation activation, float x) {
  switch (activation) {
    case graph::Activation::none:
      return x;
    case graph::Activation::relu:
      return unary_value(graph::Op::relu, x, 0);
    case graph::Activation::tanh:
      return std::tanh(x);
    case graph::Activation::sigmoid:
      return sigmoid(x);
  }
  return x;
}

}  // namespace lockstep::backend
