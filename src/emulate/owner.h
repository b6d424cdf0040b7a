// Whose a thing of the system is: namespaces and control groups outlive the process that made them, so their names say
// which one that was, by its number and when it began. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::emulate {

/// "lockstep-PID-START-": how all names of this process begin.
std::string owner_prefix();

/// Whether the name is of such a thing.
bool is_owned(std::string_view name);
/// Whether the name is of a process that is gone; a number that another process has got meanwhile does not deceive.
bool owner_is_gone(std::string_view name);

}  // namespace lockstep::emulate
