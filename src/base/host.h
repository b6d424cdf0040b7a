// The machine that this process runs on. Free functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::base {

/// Empty where the system does not say.
std::string host_name();

/// The same for all processes of a machine since it was started, whatever they call it, and hardly ever that of another
/// one. Below 2^24, so that a float holds it; 0 where the system does not say.
uint32_t machine_number();

}  // namespace lockstep::base
