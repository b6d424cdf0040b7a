// Conversions between the batch-blocked layout [blocks][rest][lanes] (batch_layout.h), plain [batch, rest] and channel
// blocks.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// Sets the pad lanes of `blocked` to zero.
void to_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* plain, float* blocked, int threads);

/// Ignores the pad lanes of `blocked`.
void from_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* blocked, float* plain, int threads);

/// An image tensor in both blocked layouts: [blocks][channels][inner][lanes] and [batch][channels /
/// block][inner][block].
struct BothBlocked {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  int lanes = 0;
  int block = 0;
};

/// Converts between the two; sets the padding of the result to zero.
void batch_to_channel_blocked(const BothBlocked& shape, const float* src, float* dst, int threads);
void channel_to_batch_blocked(const BothBlocked& shape, const float* src, float* dst, int threads);

}  // namespace lockstep::backend::cpu
