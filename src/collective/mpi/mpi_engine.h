// Open MPI: the engine of ranks that an MPI launcher (mpirun, or srun with PMIx) started. There is one group for the
// life of the process. A rank that dies ends the job; one that is silent makes the others fail after their deadline.
#pragma once

#include <memory>

#include "collective/collective.h"

namespace lockstep::collective {

/// The group of all ranks. Initialises MPI; to be called once, by the thread that started the program. Throws
/// UsageError where MPI finds another number of ranks than `expected` (the process was not started by its launcher).
/// Destroying it after a failure leaves without waiting for the others; else it waits for all to do so.
std::unique_ptr<Collective> make_mpi_group(int expected, const GroupOptions& options);

}  // namespace lockstep::collective
