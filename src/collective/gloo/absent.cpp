// In place of the engine where the build has no Gloo.
#include "collective/gloo/gloo_engine.h"
#include "lockstep/error.h"

namespace lockstep::collective {

std::unique_ptr<Joining> join_over_gloo(const std::string& /*host*/, int /*rank*/, int /*size*/,
                                        const GroupOptions& /*options*/) {
  throw UsageError("collective: this build has no Gloo; install libgloo-dev and build again");
}

}  // namespace lockstep::collective
