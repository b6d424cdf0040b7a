// The canvas of a chart: lines, areas and text in points (1/72 inch) from the upper left corner, written as SVG or
// as PDF. Internal to this room. Not for several threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chart {

struct Point {
  double x = 0;
  double y = 0;
};

struct Paint {
  std::string color;  ///< "#006ecd"
  double width = 0.75;
  std::vector<double> dash = {};
  double opacity = 1;
};

enum class Anchor : uint8_t { start, middle, end };

struct Words {
  Point at;
  std::string text;
  std::string color;
  Anchor anchor = Anchor::start;
  double size = 8;
  bool bold = false;
  double turned = 0;  ///< degrees, counter-clockwise
};

/// The faces whose widths are known; PDF readers have them without embedding.
enum class Face : uint8_t { sans, serif, mono };

struct Font {
  std::string family;  ///< for SVG
  Face face = Face::sans;
  bool standard = true;  ///< one of the faces, not another font that is only like it
};

/// Returns the font of a name: "Helvetica", "serif", "Times New Roman". Throws UsageError for a name with other
/// characters than letters, digits, spaces and hyphens.
Font font_called(const std::string& name);
double text_width(const Font& font, std::string_view text, double size, bool bold = false);
/// Returns the text in the encoding of PDF's standard fonts; characters that it lacks become '?'.
std::string in_win_ansi(std::string_view text);

class Canvas {
 public:
  virtual ~Canvas() = default;
  virtual void line(const std::vector<Point>& points, const Paint& paint) = 0;
  virtual void area(const std::vector<Point>& points, const Paint& paint) = 0;
  virtual void text(const Words& words) = 0;
  /// Clips what follows to a rectangle, until `unclip`.
  virtual void clip(Point from, Point to) = 0;
  virtual void unclip() = 0;
  /// Returns the file.
  virtual std::string finished() = 0;
};

struct Paper {
  double width = 0;
  double height = 0;
  Font font;
  std::string title;  ///< title of the document
};
std::unique_ptr<Canvas> svg_canvas(const Paper& paper);
std::unique_ptr<Canvas> pdf_canvas(const Paper& paper);

}  // namespace lockstep::chart
