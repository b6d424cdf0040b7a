// Random numbers and dropout, with Philox computed over the lanes of a vector. Bit-identical to base/random.h one by
// one: element j of row r is word j % 4 of Philox block (step; r, j / 4).
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// The words to use: `rows` rows of `width`, starting at row `first_row` of the global batch.
struct RandomRows {
  uint64_t key = 0;
  uint64_t step = 0;
  uint64_t first_row = 0;
  int64_t rows = 0;
  int64_t width = 0;
};

/// src * kept if the element's uniform number is at least `rate`, else 0. dst may be src.
void dropout(const RandomRows& shape, float rate, float kept, const float* src, float* dst, int threads);
/// low + span * uniform.
void random_uniform(const RandomRows& shape, float low, float span, float* dst, int threads);
/// mean + deviation * normal.
void random_normal(const RandomRows& shape, float mean, float deviation, float* dst, int threads);

}  // namespace lockstep::backend::cpu
