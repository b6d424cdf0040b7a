// One line and exit code 1 for ends that nobody catches: an exception on a thread of its own, memory or a thread that
// the system refuses to this program or a library of it. Other aborts end by their signal as before. Also the failure
// as data, for the program that started this one.
#pragma once

#include <string>

#include "launch/role_failure.h"

namespace lockstep::tools {

/// From now on. Call it before other threads exist.
void install_last_words();
/// This process is that role of a launcher, which gets the failure as data on standard output.
void report_last_words(const std::string& role);
/// A failure is written to this file, too, as data.
void report_failures_in(const std::string& file);
/// Writes that file, where one was asked for.
void write_failure(const launch::RoleFailure& failure) noexcept;

}  // namespace lockstep::tools
