// Layout of each node on the CPU, chosen by rule: shapes and instruction set, never timing.
#pragma once

#include <optional>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

/// With `channels_last`, bfloat16 images whose channels fill whole blocks of 16 have all of them in one block.
std::optional<LayoutChoice> choose_layouts(const KernelRequest& request, bool channels_last);

}  // namespace lockstep::backend::cpu
