// The system's limits for this process: open files, memory, threads. Names the limit that was reached and how to raise
// it. Free functions, any thread.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace lockstep::base {

/// Raises the soft limit of open files to the hard limit. Children inherit it.
void raise_open_files();
/// Throws LimitError if this process may open fewer than `needed` files. `who` names the part that needs them.
void check_open_files(uint64_t needed, const std::string& who);

/// Returns the limit behind the errno of a file or socket and how to raise it; empty if no limit was reached.
std::string limit_text(int error_number);
/// Returns "out of memory", with the limit if one is set.
std::string memory_limit_text();
/// Returns "cannot start a thread or process", with the limits that may be the reason.
std::string thread_limit_text();

/// Returns true for exceptions at a system limit: LimitError, std::bad_alloc, a thread that cannot be started.
bool is_limit(const std::exception& error);
/// Returns the line for people: `what()`, or the limit that was reached.
std::string error_text(const std::exception& error);

}  // namespace lockstep::base
