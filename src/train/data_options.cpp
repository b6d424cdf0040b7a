#include "train/data_options.h"

namespace lockstep::train {

data::LoadOptions data_options(const Settings& settings, const Shape& image) {
  data::LoadOptions options;
  options.source = data::SourceOptions::from_environment(settings.data);
  if (image.rank() == 3) {
    options.expected = {static_cast<int>(image[0]), static_cast<int>(image[1]), static_cast<int>(image[2])};
  }
  options.label_column = settings.label_column;
  options.holdout = settings.holdout;
  options.train_limit = settings.train_limit;
  options.test_limit = settings.test_limit;
  options.scale = settings.data_scale;
  options.standardise = settings.pixels == "standard";
  options.train_size = settings.train_size;
  options.test_size = settings.test_size;
  options.classes = settings.classes;
  options.fresh = settings.generate == "fresh";
  options.seed = settings.data_seed;
  return options;
}

Settings settings_of(const CheckpointHeader& header) {
  Settings settings;
  for (const SettingDef& def : settings_table()) {
    const auto found = header.settings.find(std::string(def.name));
    if (found != header.settings.end()) assign(settings, def, found->second, "checkpoint: " + std::string(def.name));
  }
  return settings;
}

}  // namespace lockstep::train
