// Many normal values from a counter, in vectors: the values that base/random.h computes one block at a time.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

/// Fills with N(0, deviation): out[4 b + j] is value j of block (row, b) of base::Philox(seed, stream), its words taken
/// in pairs by base::normal2. Equal to it within the rounding of logarithm and sine; bit-identical on the same
/// instruction set.
void fill_normal(uint64_t seed, uint64_t stream, uint64_t row, float deviation, std::span<float> out);

}  // namespace lockstep::data
