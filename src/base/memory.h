// The machine's memory. Free functions, any thread.
#pragma once

#include <cstddef>

namespace lockstep::base {

/// Returns the bytes of the whole machine, or of the emulated node that this process runs on.
double machine_memory();

/// Throws MemoryError if the whole machine has less memory than `bytes`, so that impossible requests fail before the
/// system starts to swap or kill. The message is "needs 81.2 GB of memory at once; this machine has 25.3 GB"; callers
/// put a name before it.
void require_memory(size_t bytes);

}  // namespace lockstep::base
