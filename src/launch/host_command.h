// Runs a command that talks to another host, such as ssh with a script. Blocks the caller's thread.
#pragma once

#include <functional>
#include <string_view>

#include "process/child_process.h"

namespace lockstep::launch {

using CommandOutput = std::function<void(std::string_view)>;

/// Runs a command to its end and passes on its output. If it fails, or is silent for ten minutes, throws IoError with
/// its first line on standard error; later lines mostly follow from that one.
void run_host_command(const process::Command& command, const CommandOutput& output);

}  // namespace lockstep::launch
