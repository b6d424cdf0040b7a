#include "trained_model.h"

#include <utility>

namespace lockstep::tools {

train::TrainedModel load_trained(train::ModelSource source, std::span<const nn::ModelDef> models) {
  source.models.assign(models.begin(), models.end());
  const bool named = !source.checkpoint.empty();
  train::TrainedModel model = train::load_model(source);
  if (named || !model.header.state.best_checkpoint) return model;
  source.checkpoint = "best";
  return train::load_model(source);
}

}  // namespace lockstep::tools
