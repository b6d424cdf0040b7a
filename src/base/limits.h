// Limits that the system sets for this process: open files, memory, threads. Says which was reached and how to raise
// it. Free functions, any thread.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace lockstep::base {

/// Raises the soft limit of open files to the hard one. Children inherit it.
void raise_open_files();
/// Throws LimitError where this process may open fewer than `needed` files; `who` names what needs them.
void check_open_files(uint64_t needed, const std::string& who);

/// Names the limit behind the errno of a file or socket, and how to raise it; empty where there is none.
std::string limit_text(int error_number);
/// "out of memory", with the limit where there is one.
std::string memory_limit_text();
/// "cannot start a thread or process", with the limits that may be the reason.
std::string thread_limit_text();

/// True for what the system throws at a limit: LimitError, std::bad_alloc, a thread that cannot be started.
bool is_limit(const std::exception& error);
/// The line for people: `what()`, or the limit that was reached.
std::string error_text(const std::exception& error);

}  // namespace lockstep::base
