// PictureGrid: lays out float images in rows and columns on one picture, for people to look at.
//
// Images are added one after the other and fill the rows from the left. With an even number of columns, an input and
// its output added in turn lie side by side. Small images are enlarged by a whole factor. Lines of text may stand
// beneath each image; the picture is then in colour, even for gray images. Owns its pixels; for one thread.
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
  float black = 0;  ///< values at or below are black
  float white = 1;  ///< values at or above are white
  int gap = 2;      ///< pixels between the images and around them, before enlarging
  int group = 0;    ///< images of a row that belong together, three gaps apart from the next group; 0: no groups
  int factor = 0;   ///< pixels a side for each value; 0: chosen so that an image is at least 96 a side
  int caption_lines = 0;
};

struct Caption {
  std::vector<std::string> lines;  ///< cut to the width of the image
  Colour colour = {255, 255, 255};
};

class PictureGrid {
 public:
  /// Throws UsageError unless images have 1 or 3 channels and the options are valid.
  explicit PictureGrid(const data::ImageShape& shape, const PictureGridOptions& options = {});

  /// Adds an image of `shape` in the order channels, height, width. NaN becomes black.
  void add(const float* image, Caption caption = {});

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(bytes_.size() / shape_.size()); }

  /// Draws the picture. Throws UsageError if no image was added.
  [[nodiscard]] Bitmap picture() const;
  void write(const std::string& path) const { write_png(path, picture()); }

 private:
  void draw(size_t index, Bitmap& bitmap) const;
  void draw_caption(const Caption& caption, int left, int top, Bitmap& bitmap) const;
  /// Returns the height of an image with its caption, before enlarging.
  [[nodiscard]] int cell_height() const;
  /// Returns the width in pixels of a point of the captions' font: the largest at which the longest line fits.
  [[nodiscard]] int text_scale() const;
  /// Returns the extra gaps to the left of a column, besides one per image.
  [[nodiscard]] int64_t gaps_before(int64_t column) const;

  data::ImageShape shape_;
  PictureGridOptions options_;
  std::vector<uint8_t> bytes_;  ///< images, channels last
  std::vector<Caption> captions_;
};

}  // namespace lockstep::picture
