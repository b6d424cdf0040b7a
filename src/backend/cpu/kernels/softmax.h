// Softmax and softmax cross entropy over the rows of a plain [rows, classes] matrix, stable for any finite input.
// In-place is allowed (dst == src, diff_logits == probabilities, ...).
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

void softmax(int64_t rows, int64_t classes, const float* src, float* dst, int threads);

/// diff_src = dst * (diff_dst - sum(dst * diff_dst)), row by row.
void softmax_backward(int64_t rows, int64_t classes, const float* dst, const float* diff_dst, float* diff_src,
                      int threads);

/// losses[r] = log(sum(exp(logits[r]))) - logits[r][labels[r]]; probabilities = softmax(logits).
/// Labels must lie in [0, classes): the caller has checked them.
void softmax_cross_entropy(int64_t rows, int64_t classes, const float* logits, const int32_t* labels, float* losses,
                           float* probabilities, int threads);

/// diff_logits = (probabilities - onehot(labels)) * diff_losses[row].
void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const float* probabilities, const int32_t* labels,
                                    const float* diff_losses, float* diff_logits, int threads);

}  // namespace lockstep::backend::cpu
