#include "train/data_options.h"

#include "lockstep/error.h"

namespace lockstep::train {

data::LoadOptions data_options(const settings::Settings& settings, const Shape& image) {
  data::LoadOptions options;
  options.source = data::SourceOptions::from_environment(settings.data);
  if (image.rank() == 3) {
    options.expected = {static_cast<int>(image[0]), static_cast<int>(image[1]), static_cast<int>(image[2])};
  }
  if (settings.image_size > 0) {
    if (settings.dataset != "images") {
      throw UsageError("image-size: " + std::to_string(settings.image_size) +
                       " is for the generated data set images, not for '" + settings.dataset + "'");
    }
    options.expected.height = options.expected.width = static_cast<int>(settings.image_size);
  }
  options.label_column = settings.label_column;
  options.holdout = settings.holdout;
  options.train_limit = settings.train_limit;
  options.test_limit = settings.test_limit;
  options.scale = settings.data_scale;
  options.standardise = settings.pixels == settings::PixelValues::standard;
  options.train_size = settings.train_size;
  options.test_size = settings.test_size;
  options.classes = settings.classes;
  options.fresh = settings.generate == settings::Generate::fresh;
  options.seed = settings.data_seed;
  return options;
}

settings::Settings settings_of(const checkpoint::CheckpointHeader& header) {
  settings::Settings settings;
  for (const settings::SettingDef& def : settings::settings_table()) {
    const auto found = header.settings.find(std::string(def.name));
    if (found != header.settings.end())
      settings::assign(settings, def, found->second, "checkpoint: " + std::string(def.name));
  }
  return settings;
}

}  // namespace lockstep::train
