// The command line of `lockstep`, for programs that bring their own models:
//
//   int main(int argc, char** argv) { return lockstep::run_program(argc, argv, {my_model()}); }
//
// The program then trains, resumes, evaluates, describes, exports and predicts with these models, and with the zoo's
// and those read from files.
#pragma once

#include <vector>

#include "lockstep/nn.h"

namespace lockstep {

/// Runs the command that the arguments name and returns the exit code: 0 success, 1 failure, 2 wrong usage, 128 + n
/// ended by signal n. Prints an error as one line on standard error. A model of `models` replaces a zoo model of the
/// same name.
///
/// Call it on the main thread, before starting other threads. `train` may execute the program again with other
/// environment variables (they set how threads wait), and catches SIGINT and SIGTERM to end with a checkpoint. SIGPIPE
/// and SIGXFSZ are ignored.
int run_program(int argc, char** argv, std::vector<nn::ModelDef> models = {});

}  // namespace lockstep
