// The command line of `lockstep`, for a program of one's own that brings models:
//
//   int main(int argc, char** argv) { return lockstep::run_program(argc, argv, {my_model()}); }
//
// It then trains, resumes, evaluates, describes, exports and predicts with these models besides the zoo's and files.
#pragma once

#include <vector>

#include "lockstep/nn.h"

namespace lockstep {

/// Runs the command that the arguments name and gives the exit code: 0 fine, 1 failed, 2 wrong usage, 128 + n ended by
/// signal n. What goes wrong is told in one line on standard error. Of a model that has the name of one of the zoo,
/// this one counts.
///
/// For the main thread, before others are started: `train` may begin the process anew with other environment variables
/// (how threads wait), and catches SIGINT and SIGTERM to end with a checkpoint. SIGPIPE and SIGXFSZ are ignored.
int run_program(int argc, char** argv, std::vector<nn::ModelDef> models = {});

}  // namespace lockstep
