// The orientation that a camera notes in a picture's Exif block. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace lockstep::data {

/// Returns the orientation, 1 to 8, from the content of an APP1 segment; 1, which is upright, if there is none or the
/// block is damaged.
int exif_orientation(std::span<const uint8_t> block);

/// Turns and mirrors the single picture of bytes as this orientation asks.
void make_upright(Examples& picture, int orientation);

}  // namespace lockstep::data
