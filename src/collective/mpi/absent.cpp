// In place of the engine where the build has no MPI.
#include "collective/mpi/mpi_engine.h"
#include "lockstep/error.h"

namespace lockstep::collective {

std::unique_ptr<Collective> make_mpi_group(int /*expected*/, const GroupOptions& /*options*/) {
  throw UsageError("collective: this build has no MPI; install libopenmpi-dev and build again");
}

}  // namespace lockstep::collective
