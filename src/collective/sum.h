// Additions for all engines: float32, bfloat16 and float16, in vector instructions chosen at run time. Halves are
// widened, added as floats and rounded to nearest even. Free functions, any thread.
#pragma once

#include <cstddef>

#include "collective/collective.h"

namespace lockstep::collective {

/// Sets to = a + b, `count` elements each. `to` may be `a` or `b`; they must not overlap otherwise.
void add(Element element, const void* a, const void* b, void* to, size_t count);

}  // namespace lockstep::collective
