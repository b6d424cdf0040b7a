// The commands of the program, one per cmd_*.cpp. Each adds itself to the command line. The chosen command stores its
// action in `Invocation`, and program.cpp runs it. A command parses, calls the library, prints.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::tools {

class Command;

struct Invocation {
  std::function<int()> run;  ///< returns the exit code
  char** argv = nullptr;
  std::string program = "lockstep";      ///< name of the program, for messages
  std::span<const nn::ModelDef> models;  ///< known besides the zoo's; they outlive `run`
  /// Returns manual pages of all commands: file names and texts.
  std::function<std::vector<std::pair<std::string, std::string>>()> man_pages;
};

void add_train(const Command& program, Invocation& invocation);
/// Adds launch, and the hidden command that runs on the hosts.
void add_launch(const Command& program, Invocation& invocation);
void add_eval(const Command& program, Invocation& invocation);
void add_predict(const Command& program, Invocation& invocation);
/// Commands about finished or running runs: the list, at a glance, side by side, what limited one.
void add_runs(const Command& program, Invocation& invocation);
void add_show(const Command& program, Invocation& invocation);
void add_compare(const Command& program, Invocation& invocation);
void add_why(const Command& program, Invocation& invocation);
/// Adds the commands about clusters that are not there yet: what they would give, and measuring this machine for that.
void add_plan(const Command& program, Invocation& invocation);
void add_profile(const Command& program, Invocation& invocation);
/// Adds the commands for experiments.
void add_lab(const Command& program, Invocation& invocation);
void add_export(const Command& program, Invocation& invocation);
/// Adds the web page over all runs and experiments.
void add_dash(const Command& program, Invocation& invocation);
void add_tensorboard(const Command& program, Invocation& invocation);
void add_trace(const Command& program, Invocation& invocation);
void add_monitor(const Command& program, Invocation& invocation);
/// Adds the command that runs any program as the roles of a cluster.
void add_guest(const Command& program, Invocation& invocation);
void add_data(const Command& program, Invocation& invocation);
void add_models(const Command& program, Invocation& invocation);
void add_describe(const Command& program, Invocation& invocation);
void add_keys(const Command& program, Invocation& invocation);
void add_info(const Command& program, Invocation& invocation);
void add_completion(const Command& program, Invocation& invocation);
/// Adds the hidden command that prints the generated parts of docs/.
void add_docs(const Command& program, Invocation& invocation);

}  // namespace lockstep::tools
