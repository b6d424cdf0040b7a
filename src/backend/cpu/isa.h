// The instruction set that the CPU kernels use: the best one of this machine, unless limited.
//
// A limit is for the whole process (our kernels and oneDNN's) and belongs at its start, before any kernel has run
// and before any batch-blocked tensor exists, since the blocks are as wide as the vectors.
#pragma once

#include <string_view>

namespace lockstep::backend::cpu {

enum class Isa { sse4, avx2, avx512 };

/// The instruction set in use. Throws Error on a machine without SSE4.2.
Isa active_isa();

/// Whether AVX-512 is in use and the CPU multiplies bfloat16 (AVX512_BF16).
bool has_avx512_bf16();

/// Uses `isa` or less from now on.
void limit_isa(Isa isa);

/// "sse4", "avx2" or "avx512"; anything else is a UsageError.
Isa parse_isa(std::string_view text);

std::string_view name(Isa isa);

/// Applies LOCKSTEP_MAX_ISA (sse4|avx2|avx512) if set. Any thread, any number of times; the first call counts.
void limit_isa_from_environment();

}  // namespace lockstep::backend::cpu
