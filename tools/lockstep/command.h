// The commands of the program, one per cmd_*.cpp. Each adds itself to the command line and, where it is the one
// asked for, leaves in `Invocation` what to do; program.cpp does it. A command parses, calls the library, prints.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::tools {

struct Invocation {
  std::function<int()> run;  ///< gives the exit code
  char** argv = nullptr;
  std::string program = "lockstep";      ///< its name, for what is printed
  std::span<const nn::ModelDef> models;  ///< besides the zoo's; they outlive `run`
};

void add_train(CLI::App& program, Invocation& invocation);
/// Also the hidden command that runs on the hosts.
void add_launch(CLI::App& program, Invocation& invocation);
void add_eval(CLI::App& program, Invocation& invocation);
void add_predict(CLI::App& program, Invocation& invocation);
void add_export(CLI::App& program, Invocation& invocation);
void add_data(CLI::App& program, Invocation& invocation);
void add_models(CLI::App& program, Invocation& invocation);
void add_describe(CLI::App& program, Invocation& invocation);
void add_keys(CLI::App& program, Invocation& invocation);
void add_info(CLI::App& program, Invocation& invocation);
/// Hidden: the generated parts of docs/.
void add_docs(CLI::App& program, Invocation& invocation);

}  // namespace lockstep::tools
