// Training a model from a program: what `lockstep train` does, as one call, with observers.
//
//   lockstep::train::Request request;
//   request.settings = {{"model", "lenet"}, {"dataset", "fashion-mnist"}, {"epochs", "2"}};
//   const lockstep::train::Outcome outcome = lockstep::train::train(request);
//
// Calls hooks on the training thread, in the order given. Hooks are borrowed and must outlive the call. An exception
// from a hook ends the run.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "lockstep/nn.h"
#include "lockstep/train_events.h"

namespace lockstep::train {

struct Request {
  std::map<std::string, std::string> settings;  ///< the flags of `lockstep train`, without the dashes
  std::string config_file;                      ///< YAML file with more settings; `settings` win
  std::vector<nn::ModelDef> models;             ///< models besides those of the zoo
  std::vector<Hooks*> hooks;
  const std::atomic<bool>* interrupt = nullptr;  ///< set it to end the run after the current step, with a checkpoint
};

/// Trains to the end, or resumes if `resume` is among the settings. Throws UsageError, DataError, IoError or Error.
Outcome train(const Request& request);

}  // namespace lockstep::train
