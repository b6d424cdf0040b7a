// The commands of the program, one per cmd_*.cpp. Each adds itself to the command line and, where it is the one
// asked for, leaves in `Invocation` what to do; program.cpp does it. A command parses, calls the library, prints.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::tools {

class Command;

struct Invocation {
  std::function<int()> run;  ///< gives the exit code
  char** argv = nullptr;
  std::string program = "lockstep";      ///< its name, for what is printed
  std::span<const nn::ModelDef> models;  ///< besides the zoo's; they outlive `run`
};

void add_train(const Command& program, Invocation& invocation);
/// Also the hidden command that runs on the hosts.
void add_launch(const Command& program, Invocation& invocation);
void add_eval(const Command& program, Invocation& invocation);
void add_predict(const Command& program, Invocation& invocation);
/// Of runs that are there: at a glance, side by side, what limited one.
void add_show(const Command& program, Invocation& invocation);
void add_compare(const Command& program, Invocation& invocation);
void add_why(const Command& program, Invocation& invocation);
/// Experiments.
void add_lab(const Command& program, Invocation& invocation);
void add_export(const Command& program, Invocation& invocation);
/// A web page over all runs and experiments.
void add_dash(const Command& program, Invocation& invocation);
void add_tensorboard(const Command& program, Invocation& invocation);
void add_trace(const Command& program, Invocation& invocation);
void add_monitor(const Command& program, Invocation& invocation);
void add_data(const Command& program, Invocation& invocation);
void add_models(const Command& program, Invocation& invocation);
void add_describe(const Command& program, Invocation& invocation);
void add_keys(const Command& program, Invocation& invocation);
void add_info(const Command& program, Invocation& invocation);
/// Hidden: the generated parts of docs/.
void add_docs(const Command& program, Invocation& invocation);

}  // namespace lockstep::tools
