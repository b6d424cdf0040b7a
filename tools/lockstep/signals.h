// Ctrl-C, SIGTERM and SIGHUP (the terminal closes): the first asks the training to end after its step, the second ends
// the process at once; a second SIGHUP changes nothing. SIGHUP stays ignored under nohup.
#pragma once

#include <atomic>

namespace lockstep::tools {

/// Lets the signals set the flag from now on.
void catch_interrupts();
/// Returns the flag, set once a signal has arrived; for train::SessionOptions.
const std::atomic<bool>* interrupt_flag();
/// Returns 128 + the signal, as shells do; 0 while none has arrived.
int interrupt_exit_code();

}  // namespace lockstep::tools
