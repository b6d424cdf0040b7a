// The random words of random ops, on every backend: element j of row r (axis 0) is word j % 4 of Philox block (step; r,
// j / 4), with r counted in the global batch, under a key made of the seed and the op's stream. The result does not
// depend on the thread or process that computes it.
#pragma once

#include "backend/backend.h"
#include "base/random.h"

namespace lockstep::backend {

struct RandomShape {
  int64_t rows;
  int64_t width;
};

inline RandomShape random_rows(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  return {shape[0], shape.elements(1, shape.rank())};
}

inline base::Philox op_random(const StepContext& context, uint32_t stream) {
  constexpr uint64_t kOpStreams = 0x6f700000;  // first key of the ops' streams
  return {context.seed, kOpStreams + stream};
}

}  // namespace lockstep::backend
