// Draws short texts on pictures, for captions: capital letters, digits and a few signs of 5 x 7 points. Free functions,
// any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "picture/png_write.h"

namespace lockstep::picture {

using Colour = std::array<uint8_t, 3>;  ///< red, green, blue

constexpr int kTextHeight = 7;  ///< points

/// Returns the points from the first to the last column of a text.
int text_width(std::string_view text);

/// Draws a text with its upper left corner at (left, top); a point is `scale` pixels a side. Parts outside the picture
/// are not drawn. Small letters become capitals. A character without a letter here becomes one '?', however many bytes
/// it has. On gray pictures the colour's green is used.
void draw_text(Bitmap& bitmap, int left, int top, std::string_view text, const Colour& colour, int scale);

}  // namespace lockstep::picture
