// Counts heap allocations of this process: include in one source of a test program. Allocations made while oneDNN
// executes are counted apart, because oneDNN 2.6 makes a few inside each execute.
#pragma once

#include <cstddef>

namespace lockstep::testing_support {

struct Allocations {
  size_t ours = 0;
  size_t onednn = 0;
};

/// Starts counting from zero.
void start_counting();
/// Stops and gives what was counted since.
Allocations stop_counting();
/// Called by the replaced malloc family.
void count_allocation();

}  // namespace lockstep::testing_support
