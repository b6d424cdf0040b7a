// Standard output, written so that a reader who goes away (a closed pipe) is no error and a full disk is one; and notes
// beside it.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "terminal/terminal.h"

namespace lockstep::terminal {

/// Writes text as it is; failures are found by `finish_output`.
void write_out(std::string_view text);
void flush_out();

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

/// A line of its own on standard error, whatever a display has drawn on this one: "lockstep: warning: ...". Any thread.
void print_note(const Terminal& terminal, std::string_view level, std::string_view text);

/// Flushes. Throws IoError where what was written did not arrive for another reason than a closed pipe.
void finish_output();

}  // namespace lockstep::terminal
