// Short texts on pictures: capital letters, digits and a few signs of 5 x 7 points, for captions. Free functions, any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "picture/png_write.h"

namespace lockstep::picture {

using Colour = std::array<uint8_t, 3>;  ///< red, green, blue

constexpr int kTextHeight = 7;  ///< points

/// Points from the first to the last column of a text.
int text_width(std::string_view text);

/// Draws a text with its upper left corner at (left, top), a point `scale` pixels a side; what lies beyond the picture
/// is not drawn. Small letters become capital ones; a character that there is none for is '?', one that takes several
/// bytes once. On gray pictures the colour's green counts.
void draw_text(Bitmap& bitmap, int left, int top, std::string_view text, const Colour& colour, int scale);

}  // namespace lockstep::picture
