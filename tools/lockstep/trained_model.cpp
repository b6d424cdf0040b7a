#include "trained_model.h"

#include <utility>

namespace lockstep::tools {

inspect::TrainedModel load_trained(inspect::ModelSource source, std::span<const nn::ModelDef> models) {
  source.models.assign(models.begin(), models.end());
  const bool named = !source.checkpoint.empty();
  inspect::TrainedModel model = inspect::load_model(source);
  if (named || !model.header.state.best_checkpoint) return model;
  source.checkpoint = "best";
  return inspect::load_model(source);
}

}  // namespace lockstep::tools
