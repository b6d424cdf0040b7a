// What the settings say about the data, as options for data::load. Free functions, any thread.
#pragma once

#include "data/catalog.h"
#include "lockstep/shape.h"
#include "train/checkpoint.h"
#include "train/settings.h"

namespace lockstep::train {

/// `image`: the shape [channels, height, width] that the model is made for.
data::LoadOptions data_options(const Settings& settings, const Shape& image);

/// A checkpoint's settings; what it does not name (an older version wrote it) has its default.
Settings settings_of(const CheckpointHeader& header);

}  // namespace lockstep::train
