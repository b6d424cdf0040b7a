#include "picture/picture_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/temp_dir.h"
#include "data/images.h"
#include "lockstep/error.h"

namespace lockstep::picture {
namespace {

using data::Examples;
using data::ImageShape;
using data::read_png;
using lockstep::testing::message_of;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns a pixel of a picture that was read back.
int at(const Examples& picture, int row, int column, int channel = 0) {
  const auto plane = picture.shape.size() / static_cast<size_t>(picture.shape.channels);
  return picture.bytes.at(static_cast<size_t>(channel) * plane +
                          static_cast<size_t>(row) * static_cast<size_t>(picture.shape.width) +
                          static_cast<size_t>(column));
}

TEST(PictureGrid, LaysInputBesideOutput) {
  const TempDir dir;
  PictureGrid grid({1, 2, 3}, {.columns = 2, .gap = 1, .factor = 2});
  const std::vector<float> input{0, 0.2F, 0.4F, 0.6F, 0.8F, 1};
  const std::vector<float> output{1, 1, 1, 0, 0, 0};
  grid.add(input.data());
  grid.add(output.data());
  grid.add(output.data());
  grid.write(dir / "grid.png");
  EXPECT_THAT(dir.names(), ElementsAre("grid.png"));
  const Examples picture = read_png(dir / "grid.png");
  EXPECT_EQ(picture.shape, (ImageShape{1, (3 * 2 + 1) * 2, (2 * 4 + 1) * 2}));
  const int gap = at(picture, 0, 0);
  EXPECT_EQ(at(picture, 2, 2), 0);
  EXPECT_EQ(at(picture, 3, 4), 51);
  EXPECT_EQ(at(picture, 5, 7), 255);
  EXPECT_EQ(at(picture, 2, 8), gap);
  EXPECT_EQ(at(picture, 2, 9), gap);
  EXPECT_EQ(at(picture, 2, 10), 255);
  EXPECT_EQ(at(picture, 4, 10), 0);
  EXPECT_EQ(at(picture, 8, 2), 255) << "the third begins a row";
  EXPECT_EQ(at(picture, 8, 10), gap) << "and has no neighbour";
}

TEST(PictureGrid, ColoursStayColours) {
  const TempDir dir;
  PictureGrid grid({3, 1, 2}, {.gap = 0, .factor = 1});
  const std::vector<float> image{1, 0, 0, 0.5F, 0, 1};  // red, green, blue planes
  grid.add(image.data());
  grid.write(dir / "rgb.png");
  const Examples picture = read_png(dir / "rgb.png", 3);
  EXPECT_EQ(picture.shape, (ImageShape{3, 1, 2}));
  EXPECT_THAT(picture.bytes, ElementsAre(255, 0, 0, 128, 0, 255));
}

TEST(PictureGrid, ValuesOutsideTheRangeAreBlackOrWhite) {
  PictureGrid grid({1, 1, 5}, {.black = -1, .white = 3, .gap = 0, .factor = 1});
  const std::vector<float> image{-7, 1, 99, std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::infinity()};
  grid.add(image.data());
  EXPECT_THAT(grid.picture().pixels, ElementsAre(0, 128, 255, 0, 255));
}

TEST(PictureGrid, SmallImagesAreEnlarged) {
  PictureGrid grid({1, 28, 28}, {.gap = 0});
  const std::vector<float> image(784);
  grid.add(image.data());
  EXPECT_EQ(grid.picture().width, 112);
  PictureGrid large({1, 224, 224}, {.gap = 0});
  large.add(std::vector<float>(224 * 224).data());
  EXPECT_EQ(large.picture().width, 224);
}

/// Returns the picture of a text, one line per row of points.
std::vector<std::string> drawn(std::string_view text, int width, int height, int left = 0, int top = 0, int scale = 1) {
  Bitmap bitmap{width, height, 1, std::vector<uint8_t>(static_cast<size_t>(width * height))};
  draw_text(bitmap, left, top, text, {1, 255, 3}, scale);
  std::vector<std::string> lines;
  for (int y = 0; y < height; ++y) {
    std::string& line = lines.emplace_back();
    for (int x = 0; x < width; ++x) line += bitmap.pixels[static_cast<size_t>(y * width + x)] == 255 ? '#' : '.';
  }
  return lines;
}

TEST(TextDrawing, DrawsLettersOfPoints) {
  EXPECT_EQ(text_width("7t"), 11);
  EXPECT_EQ(text_width(""), 0);
  EXPECT_THAT(drawn("7t", 12, 8), ElementsAre("#####.#####.", "....#...#...", "...#....#...", "..#.....#...",
                                              "..#.....#...", ".#......#...", ".#......#...", "............"));
  EXPECT_THAT(drawn("T", 5, 3, 0, -1, 2), ElementsAre("#####", "....#", "....#")) << "what lies outside is not drawn";
  EXPECT_EQ(drawn("T", 5, 7), drawn("t", 5, 7));
}

TEST(TextDrawing, CharactersWithoutALetterAreQuestionMarks) {
  EXPECT_EQ(drawn("\xc3\xa9", 20, 7), drawn("?", 20, 7)) << "once for both bytes";
  EXPECT_EQ(drawn("\xe9\n", 20, 7), drawn("??", 20, 7));
  EXPECT_EQ(text_width("\xc3\xa9t\xc3\xa9"), text_width("ete"));
}

TEST(PictureGrid, CaptionsLieBeneathTheirImagesInColour) {
  PictureGrid grid({1, 48, 48}, {.columns = 2, .gap = 1, .caption_lines = 2});
  const std::vector<float> white(static_cast<size_t>(48) * 48, 1.0F);
  grid.add(white.data(), {{"sees 7", "is 7"}, {10, 200, 30}});
  grid.add(white.data(), {{"a line that is far too long", "b", "one too many"}, {250, 20, 40}});
  const Bitmap picture = grid.picture();
  EXPECT_EQ(picture.channels, 3);
  EXPECT_EQ(picture.width, (2 * 49 + 1) * 2);
  std::vector<int> image(2, 0);
  std::vector<int> text(2, 0);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const uint8_t* pixel = picture.pixels.data() +
                             (static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x)) * 3;
      const bool first = x < picture.width / 2;
      const Colour wanted = first ? Colour{10, 200, 30} : Colour{250, 20, 40};
      const bool is_text = std::equal(wanted.begin(), wanted.end(), pixel);
      EXPECT_TRUE(!is_text || y >= 98) << "over the image";
      text[first ? 0 : 1] += is_text ? 1 : 0;
      image[first ? 0 : 1] += pixel[0] == 255 && pixel[1] == 255 ? 1 : 0;
    }
  }
  EXPECT_THAT(image, ElementsAre(96 * 96, 96 * 96));
  EXPECT_GT(text[0], 50);
  EXPECT_GT(text[1], 50);
}

TEST(PictureGrid, RefusesWhatCannotBeDrawn) {
  EXPECT_THAT(message_of<UsageError>([] { PictureGrid({2, 4, 4}); }), HasSubstr("images 2x4x4"));
  EXPECT_THAT(message_of<UsageError>([] { PictureGrid({1, 4, 4}, {.columns = 0}); }), HasSubstr("0 columns"));
  EXPECT_THAT(message_of<UsageError>([] { (void)PictureGrid({1, 4, 4}).picture(); }), HasSubstr("without images"));
  PictureGrid huge({1, 4096, 4096}, {.factor = 8});
  huge.add(std::vector<float>(4096 * 4096).data());
  EXPECT_THAT(message_of<UsageError>([&] { (void)huge.picture(); }), HasSubstr("at most 16384"));
}

TEST(PictureGrid, AFolderThatIsNotThereIsAnError) {
  const TempDir dir;
  EXPECT_THROW(write_png(dir / "no/such.png", {1, 1, 1, {0}}), IoError);
  EXPECT_THAT(message_of<UsageError>([&] { write_png(dir / "a.png", {2, 2, 1, {0}}); }), HasSubstr("4 are expected"));
  EXPECT_TRUE(dir.names().empty());
}

}  // namespace
}  // namespace lockstep::picture
