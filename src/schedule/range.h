// A range of elements of the parameter buffer, or of the gradient buffer, which has the same order. Plain value.
#pragma once

#include <cstddef>

namespace lockstep::schedule {

struct ParameterRange {
  size_t offset = 0;
  size_t count = 0;
};

}  // namespace lockstep::schedule
