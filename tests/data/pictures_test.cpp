// JPEG files, also damaged and malicious ones, and pictures made as large as a model's images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/temp_dir.h"
#include "data/exif.h"
#include "data/formats.h"
#include "data/images.h"
#include "data/jpegs.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::append;
using lockstep::testing::Bytes;
using lockstep::testing::make_jpeg;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;
using lockstep::testing::with_orientation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A smooth picture, which JPEG keeps almost exactly.
Bytes slope(size_t width, size_t height) {
  Bytes pixels;
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) pixels.push_back(static_cast<uint8_t>(4 * x + 2 * y));
  }
  return pixels;
}

/// Repeats one colour.
Bytes plain(size_t count, const Bytes& colour) {
  Bytes pixels;
  for (size_t i = 0; i < count; ++i) append(pixels, colour);
  return pixels;
}

std::string error_of(const Bytes& file) {
  return message_of<DataError>([&] { parse_jpeg(file, "f"); });
}

void expect_near(const Bytes& seen, const Bytes& wanted, int most) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_LE(std::abs(int{seen[i]} - int{wanted[i]}), most) << "value " << i;
}

TEST(Jpeg, GreyIsReadAsItWasWritten) {
  for (const bool progressive : {false, true}) {
    const Examples picture = parse_jpeg(make_jpeg(40, 20, slope(40, 20), {JCS_GRAYSCALE, 1, progressive}), "f");
    EXPECT_EQ(picture.shape, (ImageShape{1, 20, 40}));
    EXPECT_EQ(picture.count(), 1);
    expect_near(picture.bytes, slope(40, 20), 2);
  }
}

TEST(Jpeg, ColoursStandInPlanesOrBecomeGrey) {
  const Bytes file = make_jpeg(8, 8, plain(64, {200, 100, 50}), {JCS_RGB, 3, false});
  Bytes planes = plain(64, {200});
  append(planes, plain(64, {100}));
  append(planes, plain(64, {50}));
  expect_near(parse_jpeg(file, "f", 3).bytes, planes, 2);
  expect_near(parse_jpeg(file, "f", 1).bytes, plain(64, {124}), 2);
  expect_near(parse_jpeg(make_jpeg(8, 8, plain(64, {90})), "f", 3).bytes, plain(192, {90}), 1);
}

TEST(Jpeg, InksOfPrintingBecomeColours) {
  const Bytes file = make_jpeg(8, 8, plain(64, {255, 0, 255, 255}), {JCS_CMYK, 4, false});
  Bytes planes = plain(64, {255});
  append(planes, plain(64, {0}));
  append(planes, plain(64, {255}));
  // With Adobe's marker the inks are stored inverted; libjpeg writes it for CMYK.
  expect_near(parse_jpeg(file, "f", 3).bytes, planes, 2);
}

TEST(Jpeg, CamerasThatWereTurnedAreUnderstood) {
  Examples picture;
  picture.shape = {1, 2, 3};
  picture.bytes = {1, 2, 3, 4, 5, 6};
  const auto turned = [&](int orientation) {
    Examples copy = picture;
    make_upright(copy, orientation);
    return std::pair(copy.shape.width, copy.bytes);
  };
  EXPECT_THAT(turned(2), ::testing::Pair(3, ElementsAre(3, 2, 1, 6, 5, 4)));
  EXPECT_THAT(turned(3), ::testing::Pair(3, ElementsAre(6, 5, 4, 3, 2, 1)));
  EXPECT_THAT(turned(4), ::testing::Pair(3, ElementsAre(4, 5, 6, 1, 2, 3)));
  EXPECT_THAT(turned(5), ::testing::Pair(2, ElementsAre(1, 4, 2, 5, 3, 6)));
  EXPECT_THAT(turned(6), ::testing::Pair(2, ElementsAre(4, 1, 5, 2, 6, 3)));
  EXPECT_THAT(turned(7), ::testing::Pair(2, ElementsAre(6, 3, 5, 2, 4, 1)));
  EXPECT_THAT(turned(8), ::testing::Pair(2, ElementsAre(3, 6, 2, 5, 1, 4)));
  const Examples read = parse_jpeg(with_orientation(make_jpeg(16, 8, slope(16, 8)), 6), "f");
  EXPECT_EQ(read.shape, (ImageShape{1, 16, 8}));
  EXPECT_NEAR(read.bytes.front(), 14, 2) << "the lower left corner is up left now";
}

TEST(Jpeg, ExifBlocksFromStrangersAreUprightOrUnderstood) {
  EXPECT_EQ(exif_orientation({}), 1);
  Bytes block;
  append(block, std::string_view("Exif\0\0II*\0\xff\xff\xff\xff", 14));
  EXPECT_EQ(exif_orientation(block), 1) << "its list lies beyond its end";
  block.resize(6);
  append(block, std::string_view("II*\0\x08\0\0\0\xff\xff\x12\x01\x03\0\x01\0\0\0\x08\0", 20));
  EXPECT_EQ(exif_orientation(block), 8) << "the little end first, and fewer entries than it says";
  block[block.size() - 2] = 9;
  EXPECT_EQ(exif_orientation(block), 1) << "no such orientation";
}

TEST(Jpeg, DamageIsRefused) {
  const Bytes whole = make_jpeg(40, 20, slope(40, 20));
  EXPECT_EQ(error_of({}), "f: damaged JPEG: Empty input file");
  EXPECT_THAT(error_of({whole.begin(), whole.begin() + 100}), HasSubstr("f: damaged JPEG"));
  EXPECT_EQ(error_of({whole.begin(), whole.end() - 30}), "f: damaged JPEG: Premature end of JPEG file");
}

/// Returns the position of a marker.
size_t find_marker(const Bytes& file, uint8_t marker, size_t from = 0) {
  for (size_t i = from; i + 1 < file.size(); ++i) {
    if (file[i] == 0xff && file[i + 1] == marker) return i;
  }
  return file.size();
}

TEST(Jpeg, HugePicturesAreRefusedBeforeMemoryIsTaken) {
  Bytes file = make_jpeg(8, 8, plain(64, {9}));
  const size_t frame = find_marker(file, 0xc0);
  for (size_t i = 5; i < 9; ++i) file[frame + i] = 0xff;
  file[frame + 5] = file[frame + 7] = 0xfe;  // libjpeg itself refuses 65,535
  EXPECT_EQ(error_of(file), "f: a JPEG of 65279x65279 pixels; at most 8192x8192 are allowed");
}

TEST(Jpeg, AFileOfEndlessScansIsRefused) {
  const Bytes file = make_jpeg(40, 20, slope(40, 20), {JCS_GRAYSCALE, 1, true});
  const auto first = file.begin() + static_cast<std::ptrdiff_t>(find_marker(file, 0xda));
  const auto next = file.begin() + static_cast<std::ptrdiff_t>(find_marker(file, 0xc4, find_marker(file, 0xda) + 2));
  Bytes many(file.begin(), next);
  for (int i = 0; i < 200; ++i) many.insert(many.end(), first, next);
  many.insert(many.end(), next, file.end());
  EXPECT_EQ(error_of(many), "f: damaged JPEG: more than 100 scans");
}

TEST(Jpeg, LargePicturesAreReadSmaller) {
  const Examples picture = parse_jpeg(make_jpeg(4104, 16, plain(4104 * 16, {77})), "f");
  EXPECT_EQ(picture.shape, (ImageShape{1, 8, 2052}));
  expect_near(picture.bytes, plain(8 * 2052, {77}), 1);
}

Examples picture_of(int height, int width, Bytes bytes) {
  Examples picture;
  picture.shape = {static_cast<int>(bytes.size()) / height / width, height, width};
  picture.bytes = std::move(bytes);
  return picture;
}

Bytes resized(Examples picture, int height, int width, Fit fit) {
  resize(picture, height, width, fit);
  EXPECT_EQ(picture.shape.height, height);
  EXPECT_EQ(picture.shape.width, width);
  return picture.bytes;
}

TEST(Resize, PixelsAreMeansOfThoseBelow) {
  EXPECT_THAT(resized(picture_of(1, 4, {0, 100, 200, 60}), 1, 4, Fit::pad), ElementsAre(0, 100, 200, 60));
  EXPECT_THAT(resized(picture_of(2, 2, {0, 100, 200, 60}), 1, 1, Fit::stretch), ElementsAre(90));
  // Weights 3, 3, 1 of the first three, and the same from the end.
  EXPECT_THAT(resized(picture_of(1, 4, {0, 70, 140, 210}), 1, 2, Fit::stretch), ElementsAre(50, 160));
  EXPECT_THAT(resized(picture_of(1, 2, {0, 100}), 1, 4, Fit::stretch), ElementsAre(0, 25, 75, 100));
}

TEST(Resize, ProportionsAreKeptUnlessStretched) {
  const Examples wide = picture_of(2, 4, {10, 20, 30, 40, 10, 20, 30, 40});
  EXPECT_THAT(resized(wide, 4, 4, Fit::pad), ElementsAre(0, 0, 0, 0, 10, 20, 30, 40, 10, 20, 30, 40, 0, 0, 0, 0));
  EXPECT_THAT(resized(wide, 2, 2, Fit::crop), ElementsAre(20, 30, 20, 30));
  EXPECT_THAT(resized(wide, 1, 4, Fit::stretch), ElementsAre(10, 20, 30, 40));
}

TEST(Resize, EachChannelIsResizedAlone) {
  EXPECT_THAT(resized(picture_of(1, 2, {10, 20, 30, 40, 50, 60}), 1, 1, Fit::stretch), ElementsAre(15, 35, 55));
}

class ReadFiles : public ::testing::Test {
 protected:
  Examples read(const std::string& name, const Bytes& file, const ReadImagesOptions& options) {
    put_file(dir_ / name, file);
    return read_images(dir_ / name, options);
  }
  Examples read_text(const std::string& text, const ReadImagesOptions& options) {
    return read("data.csv", Bytes(text.begin(), text.end()), options);
  }

  TempDir dir_;
};

TEST_F(ReadFiles, PicturesGetTheModelsSizeIfAsked) {
  ReadImagesOptions options{{1, 28, 28}, "", ""};
  const Bytes file = make_jpeg(56, 56, plain(56 * 56, {80}));
  EXPECT_THAT(message_of<DataError>([&] { read("p.jpg", file, options); }), HasSubstr("images of 1x56x56"));
  options.fit = Fit::crop;
  expect_near(read("p.jpg", file, options).bytes, plain(28 * 28, {80}), 1);
  options.expected = {1, 1, 4};
  EXPECT_THAT(message_of<DataError>([&] { read("p.jpg", file, options); }),
              HasSubstr("p.jpg: a picture, and the model takes rows of 4; CSV, npz and npy are allowed"));
}

TEST_F(ReadFiles, CsvHasLabelsOrNot) {
  ReadImagesOptions options{{1, 1, 2}, "", ""};
  options.classes = {"ant", "bee", "cat"};
  const Examples plain_rows = read_text("1,2\n3,4\n", options);
  EXPECT_THAT(plain_rows.floats, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(plain_rows.labels.empty());
  EXPECT_THAT(read_text("1,2\n", options).floats, ElementsAre(1, 2));
  EXPECT_THAT(read_text("a,b\n1,2\n", options).floats, ElementsAre(1, 2));
  const Examples labelled = read_text("1,2,cat\n3,4,bee\n", options);
  EXPECT_THAT(labelled.floats, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(labelled.labels, ElementsAre(2, 1)) << "numbered as the model does, not as the file alone would";
  EXPECT_THAT(read_text("1,2,bee\n", options).labels, ElementsAre(1));
  options.label_column = "kind";
  EXPECT_THAT(read_text("kind,a,b\nbee,1,2\n", options).labels, ElementsAre(1));
  EXPECT_TRUE(read_text("a,b\n1,2\n", options).labels.empty()) << "a file without the labels' column";
}

TEST_F(ReadFiles, CsvThatDoesNotFitIsRefused) {
  ReadImagesOptions options{{1, 1, 2}, "", ""};
  options.classes = {"ant", "bee"};
  EXPECT_EQ(message_of<DataError>([&] { read_text("1,2,3,ant\n", options); }),
            (dir_ / "data.csv") + ": 3 values per row and labels from column 4; the model takes 2");
  EXPECT_EQ(message_of<DataError>([&] { read_text("1,2,cow\n", options); }),
            (dir_ / "data.csv") + ": column 3: the model has no class 'cow'; it has ant, bee");
}

TEST_F(ReadFiles, CsvOfPixelsIsReadAsInTraining) {
  const Examples picture = read_text("0,255,128,7\n", {{1, 2, 2}, "", ""});
  EXPECT_EQ(picture.shape, (ImageShape{1, 2, 2}));
  EXPECT_THAT(picture.bytes, ElementsAre(0, 255, 128, 7));
}

}  // namespace
}  // namespace lockstep::data
