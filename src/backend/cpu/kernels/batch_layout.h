// The batch-blocked layout: a logical [N, C, H, W] or [N, F] tensor stored as [ceil(N / L)][C][H][W][L], so that
// the L lanes of a vector hold L images and every lane is busy whatever the number of channels.
//
// If N is not a multiple of L, the last block has pad lanes. Forward values there may be any finite number. Gradients
// there are zero, so that sums over the batch are right. Kernels preserve this: zeros stay zeros in backward passes.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// Returns the images side by side for this batch on the active instruction set (16, 8 or 4); 0 if the batch is too
/// small.
int batch_lanes(int64_t batch);

inline int64_t batch_blocks(int64_t batch, int lanes) { return (batch + lanes - 1) / lanes; }

/// Elements of a batch-blocked tensor of `batch` images with `rest` elements each.
inline int64_t batch_blocked_size(int64_t batch, int64_t rest, int lanes) {
  return batch_blocks(batch, lanes) * rest * lanes;
}

}  // namespace lockstep::backend::cpu
