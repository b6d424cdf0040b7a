// Layout of each node on the CPU, chosen by rule: shapes and instruction set, never timing.
#pragma once

#include <optional>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

std::optional<LayoutChoice> choose_layouts(const KernelRequest& request);

}  // namespace lockstep::backend::cpu
