// Element types of each node on the CPU with precision bf16, chosen by rule: ops and shapes, never timing.
#pragma once

#include <optional>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

std::optional<PrecisionChoice> choose_precisions(const KernelRequest& request);

}  // namespace lockstep::backend::cpu
