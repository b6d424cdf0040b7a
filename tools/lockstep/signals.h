// Ctrl-C and SIGTERM: the first asks the training to end after its step, the second ends the process at once.
#pragma once

#include <atomic>

namespace lockstep::tools {

/// From now on the signals set the flag.
void catch_interrupts();
/// Set once a signal has come; for train::SessionOptions.
const std::atomic<bool>* interrupt_flag();
/// 128 + the signal, as shells count; 0 while none has come.
int interrupt_exit_code();

}  // namespace lockstep::tools
