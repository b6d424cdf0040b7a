// The CPU backend: our Highway kernels and oneDNN, chosen by rule from visible lists (kernel_list.cpp), each list
// ending in a plain reference implementation.
#pragma once

#include <memory>
#include <optional>

#include "backend/backend.h"

namespace lockstep::backend {

struct CpuOptions {
  int threads = 1;
  bool exact_conv = false;                 ///< 3x3 convolutions as direct sums, not by Winograd's algorithm
  bool bf16 = false;                       ///< wide convolutions and large products in bfloat16; needs AVX512_BF16
  std::optional<bool> channels_last = {};  ///< bfloat16 images with channels last; by default if the CPU has AMX
  bool reference_only = false;             ///< for tests: the last, plain implementation of every op, plain layouts
};

/// Throws UsageError for bf16 if the CPU, or the instruction set it is limited to, lacks AVX512_BF16.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace lockstep::backend
