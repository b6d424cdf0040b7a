// Local response normalisation over channels: y = x / (bias + alpha * sum of x^2 over the near channels) ^ beta.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// A tensor [outer][channels / block][inner][block]. Plain and batch-blocked tensors have block 1 (`inner` then counts
/// the lanes too); channel-blocked ones have the vector's width or a multiple. Pad channels of the last block are zero.
struct Lrn {
  int64_t outer = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  int block = 1;
  int64_t radius = 2;
  float alpha = 0;
  float beta = 0;
  float bias = 0;
};

/// Returns true if this instruction set has kernels for the block.
bool lrn_takes_block(int block);
/// Returns the floats of scratch that both passes need.
int64_t lrn_scratch(const Lrn& shape, int threads);

void lrn(const Lrn& shape, const float* src, float* dst, float* scratch, int threads);
void lrn_backward(const Lrn& shape, const float* src, const float* diff_dst, float* diff_src, float* scratch,
                  int threads);

}  // namespace lockstep::backend::cpu
