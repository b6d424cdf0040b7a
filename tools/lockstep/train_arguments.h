// The arguments of `lockstep train`: read once, for training here, and given on to roles that a launcher starts.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "command_line.h"
#include "train/configuration.h"

namespace lockstep::tools {

struct TrainArguments {
  std::string model;
  std::string config;
  std::vector<std::pair<std::string, std::string>> settings;  ///< in the order given
};

/// Lets the command take the model and all settings; what is given goes into `arguments`.
void add_train_arguments(const Command& app, const std::shared_ptr<TrainArguments>& arguments);

train::Configuration make_configuration(const TrainArguments& arguments, std::span<const nn::ModelDef> models);

/// The words of `train` for a role: the model and what flags and file gave, without what only a launcher needs to know
/// or says for each role itself (where the run is, which role, threads, what is printed).
std::vector<std::string> role_words(const train::Configuration& configuration);

}  // namespace lockstep::tools
