// Vector loops over contiguous arrays, relative error about 1e-6. The destination may be one of the sources.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// scale: alpha * x; add_scalar: x + alpha.
enum class UnaryFn { relu, tanh, sigmoid, softplus, exp, log, sqrt, square, neg, abs, scale, add_scalar };

/// The gradients take the forward result y (for softplus and abs the input x) first and the incoming gradient second.
enum class BinaryFn { add, sub, mul, div, max, min, relu_grad, tanh_grad, sigmoid_grad, softplus_grad, abs_grad };

void unary(UnaryFn fn, const float* src, float* dst, int64_t count, float alpha, int threads);

/// dst[i] = fn(a[i], b[i]).
void binary(BinaryFn fn, const float* a, const float* b, float* dst, int64_t count, int threads);

/// dst[i] = fn(a[i], b) and dst[i] = fn(a, b[i]).
void binary_scalar_right(BinaryFn fn, const float* a, float b, float* dst, int64_t count, int threads);
void binary_scalar_left(BinaryFn fn, float a, const float* b, float* dst, int64_t count, int threads);

/// dst[r][i] = fn(a[r][i], row[i]) and dst[r][i] = fn(row[i], b[r][i]) for `rows` rows of `count`.
void binary_row_right(BinaryFn fn, const float* a, const float* row, float* dst, int64_t rows, int64_t count,
                      int threads);
void binary_row_left(BinaryFn fn, const float* row, const float* b, float* dst, int64_t rows, int64_t count,
                     int threads);

/// dst[i] = a[i] >= b[i] ? diff[i] : 0.
void max_backward(const float* a, const float* b, const float* diff, float* dst, int64_t count, int threads);

void fill(float value, float* dst, int64_t count, int threads);

}  // namespace lockstep::backend::cpu
