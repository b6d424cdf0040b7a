// lockstep/train.h: training as one call.
#include "lockstep/train.h"

#include "role/session.h"
#include "settings/configuration.h"

namespace lockstep::train {

Outcome train(const Request& request) {
  settings::Configuration configuration(request.models);
  if (!request.config_file.empty()) configuration.load_yaml(request.config_file);
  for (const auto& [name, text] : request.settings) configuration.set(name, text);
  role::Session session(configuration, {request.hooks, request.interrupt});
  return session.run();
}

}  // namespace lockstep::train
