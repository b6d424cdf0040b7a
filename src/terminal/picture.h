// Images as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lockstep::terminal {

/// One line per two rows of pixels, one column per pixel; shades by characters. The first channel is shown.
std::vector<std::string> picture(const data::Examples& examples, int64_t index, bool unicode);

/// Blocks of lines side by side, each `width` columns wide, three columns between.
std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks, size_t width);

}  // namespace lockstep::terminal
