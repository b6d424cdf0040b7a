// The program that this process runs, to start it again. Free function; any thread.
#pragma once

#include <string>

namespace lockstep::base {

/// Returns the path to execute: /proc/self/exe, which stays right after the file is replaced or the folder is changed.
/// In a bundle (scripts/bundle) /proc/self/exe is the dynamic loader. The path is then the bundle's start script, which
/// LOCKSTEP_BUNDLE_PROGRAM names.
std::string own_program();

}  // namespace lockstep::base
