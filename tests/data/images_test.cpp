#include "data/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::Bytes;
using lockstep::testing::bytes_of;
using lockstep::testing::gzip;
using lockstep::testing::make_idx;
using lockstep::testing::make_npy;
using lockstep::testing::make_zip;
using lockstep::testing::message_of;
using lockstep::testing::npy_dict;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct PngKind {
  int color = PNG_COLOR_TYPE_GRAY;
  int bits = 8;
};

void append_to(png_structp png, png_bytep data, size_t size) {
  auto* out = static_cast<Bytes*>(png_get_io_ptr(png));
  out->insert(out->end(), data, data + size);
}

/// Writes rows of packed samples unchanged.
Bytes make_png(uint32_t width, uint32_t height, const Bytes& rows, PngKind kind = {}) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append_to, nullptr);
  png_set_IHDR(png, info, width, height, kind.bits, kind.color, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{0, 0, 0}, {255, 255, 255}, {10, 10, 10}};
  if (kind.color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 3);
  png_write_info(png, info);
  const size_t stride = png_get_rowbytes(png, info);
  for (uint32_t y = 0; y < height; ++y) png_write_row(png, rows.data() + y * stride);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

TEST(Png, GrayIsReadExactly) {
  const Examples image = parse_png(make_png(16, 16, ramp(256)), "f");
  EXPECT_EQ(image.shape, (ImageShape{1, 16, 16}));
  EXPECT_EQ(image.count(), 1);
  EXPECT_EQ(image.bytes, ramp(256));
}

TEST(Png, EveryKindBecomesGray) {
  EXPECT_THAT(parse_png(make_png(3, 1, {0, 0, 127, 255, 255, 255}, {PNG_COLOR_TYPE_GRAY, 16}), "f").bytes,
              ElementsAre(0, 127, 255));
  EXPECT_THAT(parse_png(make_png(8, 1, {0b10100001}, {PNG_COLOR_TYPE_GRAY, 1}), "f").bytes,
              ElementsAre(255, 0, 255, 0, 0, 0, 0, 255));
  EXPECT_THAT(parse_png(make_png(3, 1, {255, 0, 0, 0, 255, 0, 9, 9, 9}, {PNG_COLOR_TYPE_RGB, 8}), "f").bytes,
              ElementsAre(76, 150, 9));
  EXPECT_THAT(parse_png(make_png(3, 1, {1, 2, 0}, {PNG_COLOR_TYPE_PALETTE, 8}), "f").bytes, ElementsAre(255, 10, 0));
  EXPECT_THAT(
      parse_png(make_png(2, 1, {200, 200, 200, 0, 200, 200, 200, 255}, {PNG_COLOR_TYPE_RGB_ALPHA, 8}), "f").bytes,
      ElementsAre(0, 200));
  EXPECT_THAT(parse_png(make_png(2, 1, {200, 0, 200, 128}, {PNG_COLOR_TYPE_GRAY_ALPHA, 8}), "f").bytes,
              ElementsAre(0, 100));
}

TEST(Png, KeepsColoursInPlanesWhenAsked) {
  const Examples image = parse_png(make_png(2, 1, {1, 2, 3, 4, 5, 6}, {PNG_COLOR_TYPE_RGB, 8}), "f", 3);
  EXPECT_EQ(image.shape, (ImageShape{3, 1, 2}));
  EXPECT_THAT(image.bytes, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Png, RefusesDamageAndHugeImages) {
  const auto error = [](const Bytes& file) { return message_of<DataError>([&] { parse_png(file, "f"); }); };
  const Bytes whole = make_png(16, 16, ramp(256));
  EXPECT_THAT(error({}), HasSubstr("f: damaged PNG"));
  EXPECT_THAT(error({whole.begin(), whole.begin() + 60}), HasSubstr("f: damaged PNG"));
  Bytes broken = whole;
  broken[50] ^= 0xff;
  EXPECT_THAT(error(broken), HasSubstr("f: damaged PNG"));
  EXPECT_EQ(error(make_png(5000, 1, ramp(5000))), "f: a PNG of 5000x1 pixels; at most 4096x4096 are allowed");
}

class ReadImages : public ::testing::Test {
 protected:
  Examples read(const Bytes& file, const ReadImagesOptions& options = {}) {
    put_file(path_, file);
    return read_images(path_, options);
  }

  TempDir dir_;
  std::string path_ = dir_ / "images.dat";
};

TEST_F(ReadImages, TellsFormatsByContent) {
  const Bytes idx = make_idx({2, 3, 4}, ramp(24));
  const Bytes npy = make_npy(npy_dict("|u1", "(2, 3, 4)"), ramp(24));
  for (const Bytes& file : {idx, gzip(idx), npy, make_zip({{"arr_0.npy", npy, 8}})}) {
    const Examples images = read(file);
    EXPECT_EQ(images.shape, (ImageShape{1, 3, 4}));
    EXPECT_EQ(images.bytes, ramp(24));
  }
  EXPECT_EQ(read(make_png(4, 3, ramp(12))).shape, (ImageShape{1, 3, 4}));
}

TEST_F(ReadImages, RefusesUnknownFormats) {
  EXPECT_EQ(message_of<DataError>([&] {
              read({'h', 'e', 'l', 'l', 'o'});
            }),
            path_ + ": unknown format; PNG, JPEG, npz, npy, idx (plain or gzip) and .csv are allowed");
}

TEST_F(ReadImages, RefusesOtherSizesThanExpected) {
  EXPECT_EQ(message_of<DataError>([&] {
              read(make_png(4, 3, ramp(12)), {{1, 28, 28}, "", ""});
            }),
            path_ + ": images of 1x3x4 (channels x height x width); 1x28x28 is expected");
}

TEST_F(ReadImages, FindsArraysAndLabelsByName) {
  const Bytes images = make_npy(npy_dict("<f4", "(2, 4)"), bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7}));
  const Bytes labels = make_npy(npy_dict("<i4", "(2, 1)"), bytes_of<int32_t>({5, 6}));
  const Bytes archive = make_zip({{"y_test.npy", labels}, {"X_test.npy", images}, {"other.npy", images}});
  const Examples found = read(archive, {{1, 2, 2}, "", ""});
  EXPECT_EQ(found.count(), 2);
  EXPECT_THAT(found.labels, ElementsAre(5, 6));
  EXPECT_TRUE(read(archive, {{1, 2, 2}, "other", ""}).labels.empty());
  EXPECT_EQ(message_of<DataError>([&] {
              read(make_zip({{"a.npy", images}, {"b.npy", images}}));
            }),
            path_ + ": which array holds the images? It has a, b");
  const Bytes fewer = make_npy(npy_dict("<i4", "(1, 1)"), bytes_of<int32_t>({5}));
  EXPECT_EQ(message_of<DataError>([&] {
              read(make_zip({{"y.npy", fewer}, {"x.npy", images}}), {{1, 2, 2}, "", ""});
            }),
            path_ + ": 2 images in x but 1 labels in y");
}

}  // namespace
}  // namespace lockstep::data
