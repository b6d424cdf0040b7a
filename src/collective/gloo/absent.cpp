#include "collective/gloo/gloo_engine.h"

namespace lockstep::collective {

std::unique_ptr<Joining> join_over_gloo(const std::string& /*host*/, int /*rank*/, int /*size*/,
                                        const GroupOptions& /*options*/) {
  throw UsageError("this build has no Gloo: libgloo-dev was not installed when it was configured");
}

}  // namespace lockstep::collective
