#include "model_facts.h"

#include <fmt/format.h>

#include "terminal/text.h"

namespace lockstep::tools {

std::string training_text(const nn::ModelDef& model) {
  const nn::TrainingDefaults& defaults = model.defaults;
  return fmt::format("{} {}, batch {}, {}", defaults.optimizer, defaults.learning_rate, defaults.batch,
                     terminal::counted(static_cast<uint64_t>(defaults.epochs), "epoch"));
}

}  // namespace lockstep::tools
