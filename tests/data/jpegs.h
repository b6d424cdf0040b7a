// Makes small JPEG files for tests.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "data/formats.h"

namespace lockstep::testing {

struct JpegKind {
  J_COLOR_SPACE colours = JCS_GRAYSCALE;
  int components = 1;
  bool progressive = false;
};

/// Encodes mixed samples row by row, with the best quality and without thinning out colours.
inline Bytes make_jpeg(uint32_t width, uint32_t height, const Bytes& pixels, const JpegKind& kind = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = kind.components;
  info.in_color_space = kind.colours;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (uint32_t y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data() + size_t{y} * width * static_cast<size_t>(kind.components));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  Bytes file(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return file;
}

/// Puts an Exif block with this orientation behind the file's first marker.
inline Bytes with_orientation(const Bytes& jpeg, uint8_t orientation) {
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  append(file, Bytes{0xff, 0xe1, 0, 2 + 6 + 8 + 2 + 12 + 4});
  append(file, std::string_view("Exif\0\0MM\0*\0\0\0\x08", 14));
  append(file, Bytes{0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0});
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

}  // namespace lockstep::testing
