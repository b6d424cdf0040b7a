// Between plain [batch, rest] and the batch-blocked layout [blocks][rest][lanes] (batch_layout.h).
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// Pad lanes of `blocked` become zero.
void to_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* plain, float* blocked, int threads);

/// Pad lanes of `blocked` are not read into `plain`.
void from_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* blocked, float* plain, int threads);

}  // namespace lockstep::backend::cpu
