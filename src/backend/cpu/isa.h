// The instruction set of the CPU kernels: the machine's best one, unless limited.
//
// A limit applies to the whole process (our kernels and oneDNN's). Set it at the start, before any kernel has run and
// before any batch-blocked tensor exists, since blocks are as wide as the vectors.
#pragma once

#include <string_view>

namespace lockstep::backend::cpu {

enum class Isa { sse4, avx2, avx512 };

/// Returns the instruction set in use. Throws Error on a machine without SSE4.2.
Isa active_isa();

/// Returns true if AVX-512 is in use and the CPU multiplies bfloat16 (AVX512_BF16).
bool has_avx512_bf16();

/// Returns true if, besides, oneDNN multiplies bfloat16 tiles (AMX) in this process. Fixes oneDNN's instruction set.
bool has_amx_bf16();

/// Limits the kernels to `isa` and older instruction sets from now on.
void limit_isa(Isa isa);

/// Parses "sse4", "avx2" or "avx512"; throws UsageError for any other text.
Isa parse_isa(std::string_view text);

std::string_view name(Isa isa);

/// Applies LOCKSTEP_MAX_ISA (sse4|avx2|avx512) if set. Any thread, any number of times; only the first call has an
/// effect.
void limit_isa_from_environment();

}  // namespace lockstep::backend::cpu
