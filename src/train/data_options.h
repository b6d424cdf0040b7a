// What the settings say about the data, as options for data::load. Free functions, any thread.
#pragma once

#include "checkpoint/checkpoint.h"
#include "data/catalog.h"
#include "lockstep/shape.h"
#include "settings/settings.h"

namespace lockstep::train {

/// `image`: the shape [channels, height, width] that the model is made for.
data::LoadOptions data_options(const settings::Settings& settings, const Shape& image);

/// A checkpoint's settings; what it does not name (an older version wrote it) has its default.
settings::Settings settings_of(const checkpoint::CheckpointHeader& header);

}  // namespace lockstep::train
