// Training a model from a program: what `lockstep train` does, as one call, with observers.
//
//   lockstep::train::Request request;
//   request.settings = {{"model", "lenet"}, {"dataset", "fashion-mnist"}, {"epochs", "2"}};
//   const lockstep::train::Outcome outcome = lockstep::train::train(request);
//
// Hooks are called on the training thread, in the order given, and are borrowed: they must outlive the call. What a
// hook throws ends the run.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "lockstep/nn.h"
#include "lockstep/train_events.h"

namespace lockstep::train {

struct Request {
  std::map<std::string, std::string> settings;  ///< as the flags of `lockstep train`, without the dashes
  std::string config_file;                      ///< a YAML file with more of them; `settings` win
  std::vector<nn::ModelDef> models;             ///< besides those of the zoo
  std::vector<Hooks*> hooks;
  const std::atomic<bool>* interrupt = nullptr;  ///< set it to end after the current step, with a checkpoint
};

/// Trains to the end, or resumes (`resume` among the settings). Throws UsageError, DataError, IoError or Error.
Outcome train(const Request& request);

}  // namespace lockstep::train
