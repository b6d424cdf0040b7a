// Writes to standard output, so that a closed pipe is not an error and a full disk is one. Also prints notes on
// standard error.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "terminal/terminal.h"

namespace lockstep::terminal {

/// Writes text unchanged; `finish_output` reports failures.
void write_out(std::string_view text);
void flush_out();

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

/// Prints a separate line on standard error, also while a display draws there: "lockstep: warning: ...". Any
/// thread.
void print_note(const Terminal& terminal, std::string_view level, std::string_view text);

/// Flushes. Throws IoError if output was lost for any reason other than a closed pipe.
void finish_output();

}  // namespace lockstep::terminal
