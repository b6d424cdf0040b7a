// How much memory there is. A free function, any thread.
#pragma once

#include <cstddef>

namespace lockstep::base {

/// Bytes of the whole machine, or of the emulated node that this process is on.
double machine_memory();

/// Throws MemoryError where the whole machine has less: what can never fit is refused before the system starts to swap
/// or kill. The message ("needs 81.2 GB of memory at once; this machine has 25.3 GB") goes on where the caller says
/// who.
void require_memory(size_t bytes);

}  // namespace lockstep::base
