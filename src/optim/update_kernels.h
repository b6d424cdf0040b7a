// The arithmetic of the optimizers and of gradient averaging: vector loops over contiguous floats, chosen for the
// machine's instruction set at run time (LOCKSTEP_MAX_ISA limits it, as it does the CPU backend's). Sources and
// destinations must not overlap unless they are the same array.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::optim {

/// p = p * keep - rate * g.
struct SgdUpdate {
  float keep = 1;  ///< 1 - learning rate * weight decay
  float rate = 0;  ///< learning rate * gradient scale
};
void sgd_update(const SgdUpdate& update, float* params, const float* grads, size_t count, int threads);

/// g' = scale * g + decay * p; m = momentum * m + g'; p -= rate * (nesterov ? g' + momentum * m : m).
struct MomentumUpdate {
  float scale = 1;
  float decay = 0;
  float momentum = 0;
  float rate = 0;
  bool nesterov = false;
};
void momentum_update(const MomentumUpdate& update, float* params, float* velocity, const float* grads, size_t count,
                     int threads);

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
void adam_update(const AdamUpdate& update, float* params, float* first, float* second, const float* grads, size_t count,
                 int threads);

/// dst = (dst + weight * src) * scale: one more micro-batch, and at the last the division.
void add_weighted(float weight, float scale, const float* src, float* dst, size_t count, int threads);

/// The sum of squares in double, in an order that depends on the count and the instruction set alone.
double sum_of_squares(std::span<const float> values, int threads);

}  // namespace lockstep::optim
