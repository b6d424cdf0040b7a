// The arithmetic of the optimizers and of gradient averaging: vector loops over contiguous floats, chosen for the
// machine's instruction set at run time (LOCKSTEP_MAX_ISA limits it, like the CPU backend's). An update reads one set
// of arrays and writes another of the same length, or the same one. They must not overlap otherwise.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::optim {

/// Parameters and the optimizer's state; pointers that a method does not use are ignored.
struct Source {
  const float* params = nullptr;
  const float* first = nullptr;  ///< velocity, or the first moment
  const float* second = nullptr;
};
struct Target {
  float* params = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};

/// p = p * keep - rate * g.
struct SgdUpdate {
  float keep = 1;  ///< 1 - learning rate * weight decay
  float rate = 0;  ///< learning rate * gradient scale
};
void sgd_update(const SgdUpdate& update, const Source& from, const float* grads, const Target& to, size_t count,
                int threads);
inline void sgd_update(const SgdUpdate& update, float* params, const float* grads, size_t count, int threads) {
  sgd_update(update, {params}, grads, {params}, count, threads);
}

/// g' = scale * g + decay * p; m = momentum * m + g'; p -= rate * (nesterov ? g' + momentum * m : m).
struct MomentumUpdate {
  float scale = 1;
  float decay = 0;
  float momentum = 0;
  float rate = 0;
  bool nesterov = false;
};
void momentum_update(const MomentumUpdate& update, const Source& from, const float* grads, const Target& to,
                     size_t count, int threads);
inline void momentum_update(const MomentumUpdate& update, float* params, float* velocity, const float* grads,
                            size_t count, int threads) {
  momentum_update(update, {params, velocity}, grads, {params, velocity}, count, threads);
}

/// g' = scale * g + decay * p; m and v are running means of g' and g'^2; p -= rate * m / (sqrt(v) * root + epsilon).
struct AdamUpdate {
  float scale = 1;
  float decay = 0;
  float rest1 = 0;  ///< 1 - beta1
  float beta2 = 0;
  float rest2 = 0;
  float rate = 0;  ///< learning rate / (1 - beta1^t)
  float root = 0;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};
void adam_update(const AdamUpdate& update, const Source& from, const float* grads, const Target& to, size_t count,
                 int threads);
inline void adam_update(const AdamUpdate& update, float* params, float* first, float* second, const float* grads,
                        size_t count, int threads) {
  adam_update(update, {params, first, second}, grads, {params, first, second}, count, threads);
}

/// dst = (a + weight * b) * scale: adds one more micro-batch; the last one also divides.
void add_weighted(float weight, float scale, const float* a, const float* b, float* dst, size_t count, int threads);
inline void add_weighted(float weight, float scale, const float* src, float* dst, size_t count, int threads) {
  add_weighted(weight, scale, dst, src, dst, count, threads);
}

/// Returns the sum of squares in double, in an order that depends only on the count and the instruction set.
double sum_of_squares(std::span<const float> values, int threads);

}  // namespace lockstep::optim
