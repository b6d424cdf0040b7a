// Open MPI: the engine of ranks started by an MPI launcher (mpirun, or srun with PMIx). There is one group for the life
// of the process. A rank that dies ends the job. If a rank is silent, the others fail after their deadline.
#pragma once

#include <memory>

#include "collective/collective.h"

namespace lockstep::collective {

/// Initialises MPI and makes the group of all ranks; call it once, on the thread that started the program. Throws
/// UsageError if MPI finds another number of ranks than `expected` (the process was not started by its launcher).
/// Destroying the group waits for all ranks to do the same; after a failure it does not wait.
std::unique_ptr<Collective> make_mpi_group(int expected, const GroupOptions& options);

}  // namespace lockstep::collective
