// The machine and system that an experiment runs on, as its report states them. A free function; any thread.
#pragma once

#include <string>

#include "lab/results.h"

namespace lockstep::lab {

/// Describes this machine. The caller names its program with the version, and its compiler.
Environment environment(std::string program, std::string compiler);

}  // namespace lockstep::lab
