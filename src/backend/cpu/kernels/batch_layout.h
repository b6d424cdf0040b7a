// The batch-blocked layout: a logical [N, C, H, W] or [N, F] tensor stored as [ceil(N / L)][C][H][W][L], so that
// the L lanes of a vector hold L images and every lane is busy whatever the number of channels.
//
// When N is no multiple of L the last block has pad lanes. Forward values there may be anything finite; gradients
// there are zero, so that sums over the batch are right. Kernels keep it so: zeros stay zeros in backward passes.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// Images side by side for this batch on the active instruction set (16, 8 or 4); 0 if the batch is too small to pay.
int batch_lanes(int64_t batch);

inline int64_t batch_blocks(int64_t batch, int lanes) { return (batch + lanes - 1) / lanes; }

/// Elements of a batch-blocked tensor of `batch` images with `rest` elements each.
inline int64_t batch_blocked_size(int64_t batch, int64_t rest, int lanes) {
  return batch_blocks(batch, lanes) * rest * lanes;
}

}  // namespace lockstep::backend::cpu
