// jpeglib.h needs the two before it.
#include <cstddef>
#include <cstdio>
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>

#include "base/file.h"
#include "data/exif.h"
#include "data/images.h"
#include "data/luma.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMaxJpeg = uint64_t{256} << 20;
constexpr uint32_t kMaxJpegSide = 8192;
constexpr uint32_t kMaxDecodedSide = 4096;        ///< larger pictures are halved or quartered by libjpeg
constexpr long kMaxJpegMemory = long{512} << 20;  ///< progressive files: all coefficients; 403 MB for the largest
constexpr int kMaxScans = 100;                    ///< of progressive files; each reads the whole picture anew
constexpr int kExifMarker = JPEG_APP0 + 1;

/// libjpeg's state. Its errors jump back to the last setjmp, so a function that calls it has no objects to destroy.
class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { give_up(info); };
    errors_.emit_message = [](j_common_ptr info, int level) { note(info, level); };
    progress_.progress_monitor = [](j_common_ptr info) { check_scans(info); };
    info_.client_data = this;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }

  /// Reads up to the picture's size; false after an error.
  bool read_header(std::span<const uint8_t> file) {
    if (setjmp(back_) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    info_.mem->max_memory_to_use = kMaxJpegMemory;
    jpeg_mem_src(&info_, file.data(), file.size());
    jpeg_save_markers(&info_, kExifMarker, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Chooses colours and size of the pixels; false after an error.
  bool choose_output() {
    if (setjmp(back_) != 0) return false;
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four ? JCS_CMYK : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;  // the same bits on every CPU
    info_.scale_num = info_.scale_denom = 1;
    while (std::max(width(), height()) > kMaxDecodedSide * info_.scale_denom) info_.scale_denom *= 2;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  /// Reads all rows into `pixels`, row_bytes() each; false after an error.
  bool read_rows(uint8_t* pixels) {
    if (setjmp(back_) != 0) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      row_ = pixels + size_t{info_.output_scanline} * row_bytes();
      jpeg_read_scanlines(&info_, &row_, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[nodiscard]] uint32_t width() const { return info_.image_width; }
  [[nodiscard]] uint32_t height() const { return info_.image_height; }
  [[nodiscard]] size_t output_width() const { return info_.output_width; }
  [[nodiscard]] size_t output_height() const { return info_.output_height; }
  [[nodiscard]] size_t colours() const { return static_cast<size_t>(info_.output_components); }
  [[nodiscard]] size_t row_bytes() const { return output_width() * colours(); }
  [[nodiscard]] bool inverted() const { return info_.saw_Adobe_marker != FALSE; }
  [[nodiscard]] const char* reason() const { return reason_.data(); }

  [[nodiscard]] int orientation() const {
    for (jpeg_saved_marker_ptr marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != kExifMarker) continue;
      const int found = exif_orientation({marker->data, marker->data_length});
      if (found != 1) return found;
    }
    return 1;
  }

 private:
  static JpegDecoder& of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }

  [[noreturn]] static void give_up(j_common_ptr info) {
    info->err->format_message(info, of(info).reason_.data());
    std::longjmp(of(info).back_, 1);
  }

  /// Takes what libjpeg would repair with made-up pixels as damage.
  static void note(j_common_ptr info, int level) {
    if (level >= 0) return;  // a trace, no warning
    const int code = info->err->msg_code;
    const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                          code == JWRN_BOGUS_PROGRESSION;
    if (!harmless) give_up(info);
  }

  static void check_scans(j_common_ptr info) {
    if (info->is_decompressor == FALSE || of(info).info_.input_scan_number <= kMaxScans) return;
    const auto end = fmt::format_to_n(of(info).reason_.data(), JMSG_LENGTH_MAX - 1, "more than {} scans", kMaxScans);
    *end.out = '\0';
    std::longjmp(of(info).back_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  JSAMPROW row_ = nullptr;
  std::array<char, JMSG_LENGTH_MAX> reason_{};
};

/// Makes colours from the four inks of printing; programs of Adobe store them inverted.
void to_rgb(const uint8_t* inks, bool inverted, uint8_t* rgb) {
  const auto paper = [&](uint8_t ink) { return inverted ? uint32_t{ink} : 255U - ink; };
  for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>((paper(inks[c]) * paper(inks[3]) + 127) / 255);
}

}  // namespace

Examples parse_jpeg(std::span<const uint8_t> file, const std::string& name, int channels) {
  if (channels != 1 && channels != 3) {
    throw UsageError(fmt::format("{}: a JPEG cannot be read with {} channels; 1 and 3 are allowed", name, channels));
  }
  JpegDecoder decoder;
  const auto check = [&](bool fine) {
    if (!fine) throw DataError(fmt::format("{}: damaged JPEG: {}", name, decoder.reason()));
  };
  check(decoder.read_header(file));
  if (decoder.width() > kMaxJpegSide || decoder.height() > kMaxJpegSide) {
    throw DataError(fmt::format("{}: a JPEG of {}x{} pixels; at most {}x{} are allowed", name, decoder.width(),
                                decoder.height(), kMaxJpegSide, kMaxJpegSide));
  }
  check(decoder.choose_output());
  const int orientation = decoder.orientation();  // forgotten with the last row
  std::vector<uint8_t> mixed(decoder.row_bytes() * decoder.output_height());
  check(decoder.read_rows(mixed.data()));
  Examples picture;
  picture.shape = {channels, static_cast<int>(decoder.output_height()), static_cast<int>(decoder.output_width())};
  const size_t pixels = decoder.output_height() * decoder.output_width();
  picture.bytes.resize(pixels * static_cast<size_t>(channels));
  std::array<uint8_t, 3> rgb{};
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* from = mixed.data() + i * decoder.colours();
    if (decoder.colours() == 4) {
      to_rgb(from, decoder.inverted(), rgb.data());
      from = rgb.data();
    }
    if (channels == 1) {
      picture.bytes[i] = luma(from);
    } else {
      for (size_t c = 0; c < 3; ++c) picture.bytes[c * pixels + i] = from[c];
    }
  }
  make_upright(picture, orientation);
  return picture;
}

Examples read_jpeg(const std::string& path, int channels) {
  return parse_jpeg(base::read_file(path, kMaxJpeg), path, channels);
}

}  // namespace lockstep::data
