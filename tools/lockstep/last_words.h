// Reports uncaught ends with one line and exit code 1: an exception on a library's or our own thread, memory or a
// thread that the system refused. Other aborts end by their signal as before. Also reports the failure as data to the
// parent process.
#pragma once

#include <string>

#include "launch/role_failure.h"

namespace lockstep::tools {

/// Installs the handlers. Call it before other threads exist.
void install_last_words();
/// Marks this process as that role of a launcher, which gets the failure as data on standard output.
void report_last_words(const std::string& role);
/// Also writes a failure to this file, as data.
void report_failures_in(const std::string& file);
/// Writes that file, if one was set.
void write_failure(const launch::RoleFailure& failure) noexcept;

}  // namespace lockstep::tools
