// The arguments of `lockstep train`: read once, for training here, and given on to roles that a launcher starts.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "command_line.h"
#include "settings/configuration.h"

namespace lockstep::tools {

struct TrainArguments {
  std::string model;
  std::string config;
  struct Setting {
    std::string name;
    std::string text;
    std::string flag;  ///< the flag that gave it: "--async" for mode; empty: the setting's own
  };
  std::vector<Setting> settings;
};

/// Lets the command take the model and all settings; what is given goes into `arguments`.
void add_train_arguments(const Command& app, const std::shared_ptr<TrainArguments>& arguments);

settings::Configuration make_configuration(const TrainArguments& arguments, std::span<const nn::ModelDef> models);

}  // namespace lockstep::tools
