// Draws images as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lockstep::terminal {

/// Returns one line per two rows of pixels, one column per pixel, shaded by characters. Draws only the first channel.
std::vector<std::string> picture(const data::Examples& examples, int64_t index, bool unicode);

/// Places blocks of lines side by side, each `width` columns wide, with three columns between them.
std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks, size_t width);

}  // namespace lockstep::terminal
