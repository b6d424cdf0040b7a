// PictureGrid: float images laid out in rows and columns on one picture, for people to look at.
//
// Images are added one after the other and fill the rows from the left; with an even number of columns, an input and
// its output added in turn lie side by side. Small images are enlarged by a whole factor. Beneath each there may be
// lines of text; the picture is then in colour, whatever the images are. Owns its pixels; for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "picture/png_write.h"
#include "picture/text_drawing.h"

namespace lockstep::picture {

struct PictureGridOptions {
  int columns = 8;
  float black = 0;  ///< values at and below are black,
  float white = 1;  ///< at and above white
  int gap = 2;      ///< pixels between the images and around them, before enlarging
  int group = 0;    ///< so many images of a row belong together, three gaps apart from the next; 0: none do
  int factor = 0;   ///< each value becomes so many pixels a side; 0: so that an image is at least 96 a side
  int caption_lines = 0;
};

struct Caption {
  std::vector<std::string> lines;  ///< what is longer than the image is wide is cut
  Colour colour = {255, 255, 255};
};

class PictureGrid {
 public:
  /// UsageError unless images have 1 or 3 channels and the options make sense.
  explicit PictureGrid(const data::ImageShape& shape, const PictureGridOptions& options = {});

  /// An image of `shape` in the order channels, height, width. What is not a number is black.
  void add(const float* image, Caption caption = {});

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(bytes_.size() / shape_.size()); }

  /// UsageError when nothing was added.
  [[nodiscard]] Bitmap picture() const;
  void write(const std::string& path) const { write_png(path, picture()); }

 private:
  void draw(size_t index, Bitmap& bitmap) const;
  void draw_caption(const Caption& caption, int left, int top, Bitmap& bitmap) const;
  /// Of an image with its caption, before enlarging.
  [[nodiscard]] int cell_height() const;
  /// Pixels a side of a point of all captions: as large as the longest line lets them be.
  [[nodiscard]] int text_scale() const;
  /// Besides one per image, to the left of a column.
  [[nodiscard]] int64_t gaps_before(int64_t column) const;

  data::ImageShape shape_;
  PictureGridOptions options_;
  std::vector<uint8_t> bytes_;  ///< the images, channels last
  std::vector<Caption> captions_;
};

}  // namespace lockstep::picture
