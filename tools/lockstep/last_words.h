// One line and exit code 1 for ends that nobody catches: an exception on a thread of its own, memory or a thread that
// the system refuses to this program or a library of it. Other aborts end by their signal as before.
#pragma once

#include <string>

namespace lockstep::tools {

/// From now on. Call it before other threads exist.
void install_last_words();
/// This process is that role of a launcher: it gets the failure as data, too.
void report_last_words(const std::string& role);

}  // namespace lockstep::tools
