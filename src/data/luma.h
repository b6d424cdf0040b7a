// Grey of a colour, alike for all formats of pictures.
#pragma once

#include <cstdint>

namespace lockstep::data {

/// ITU-R 601 luma in 16-bit fixed point, exact for grey.
inline uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
}

}  // namespace lockstep::data
