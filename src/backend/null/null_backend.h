// A backend that plans like a real one and computes nothing: for testing passes, memory plans and schedules.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace lockstep::backend {

std::unique_ptr<Backend> make_null_backend();

}  // namespace lockstep::backend
