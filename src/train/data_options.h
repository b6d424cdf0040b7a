// The settings of the data as options for data::load. Free functions, any thread.
#pragma once

#include "checkpoint/checkpoint.h"
#include "data/catalog.h"
#include "lockstep/shape.h"
#include "settings/settings.h"

namespace lockstep::train {

/// `image` is the shape [channels, height, width] that the model takes.
data::LoadOptions data_options(const settings::Settings& settings, const Shape& image);

/// Returns a checkpoint's settings; settings missing in it (written by an older version) have their defaults.
settings::Settings settings_of(const checkpoint::CheckpointHeader& header);

}  // namespace lockstep::train
