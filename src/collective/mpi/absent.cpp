#include "collective/mpi/mpi_engine.h"
#include "lockstep/error.h"

namespace lockstep::collective {

std::unique_ptr<Collective> make_mpi_group(int /*expected*/, const GroupOptions& /*options*/) {
  throw UsageError("this build has no Open MPI; --collective gloo needs none");
}

}  // namespace lockstep::collective
