#include <fmt/format.h>

#include <array>
#include <string>

#include "base/utf8.h"
#include "chart/canvas.h"
#include "chart/chart.h"

namespace lockstep::chart {
namespace {

class SvgCanvas : public Canvas {
 public:
  explicit SvgCanvas(const Paper& paper) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.2f}pt\" height=\"{1:.2f}pt\" viewBox=\"0 0 {0:.2f} "
        "{1:.2f}\" font-family=\"{2}\">\n<title>{3}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        paper.width, paper.height, paper.font.family, escape_html(base::as_utf8(paper.title)));
  }

  void line(const std::vector<Point>& points, const Paint& paint) override {
    text_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\"", path(points), paint.color,
                         paint.width);
    if (!paint.dash.empty()) {
      text_ += " stroke-dasharray=\"";
      for (size_t i = 0; i < paint.dash.size(); ++i) text_ += fmt::format("{}{:g}", i == 0 ? "" : " ", paint.dash[i]);
      text_ += "\"";
    }
    if (paint.opacity < 1) text_ += fmt::format(" stroke-opacity=\"{:g}\"", paint.opacity);
    text_ += " stroke-linejoin=\"round\"/>\n";
  }

  void area(const std::vector<Point>& points, const Paint& paint) override {
    text_ += fmt::format("<path d=\"{}Z\" fill=\"{}\"", path(points), paint.color);
    if (paint.opacity < 1) text_ += fmt::format(" fill-opacity=\"{:g}\"", paint.opacity);
    text_ += "/>\n";
  }

  void text(const Words& words) override {
    constexpr std::array<const char*, 3> kAnchors{"start", "middle", "end"};
    text_ += fmt::format("<text x=\"{0:.2f}\" y=\"{1:.2f}\" font-size=\"{2:g}\" fill=\"{3}\" text-anchor=\"{4}\"{5}",
                         words.at.x, words.at.y, words.size, words.color,
                         kAnchors.at(static_cast<size_t>(words.anchor)), words.bold ? " font-weight=\"bold\"" : "");
    if (words.turned != 0) {
      text_ += fmt::format(" transform=\"rotate({:g} {:.2f} {:.2f})\"", -words.turned, words.at.x, words.at.y);
    }
    text_ += ">" + escape_html(base::as_utf8(words.text)) + "</text>\n";
  }

  void clip(Point from, Point to) override {
    ++clips_;
    text_ += fmt::format(
        "<clipPath id=\"clip{0}\"><rect x=\"{1:.2f}\" y=\"{2:.2f}\" width=\"{3:.2f}\" height=\"{4:.2f}\"/></clipPath>\n"
        "<g clip-path=\"url(#clip{0})\">\n",
        clips_, from.x, from.y, to.x - from.x, to.y - from.y);
  }
  void unclip() override { text_ += "</g>\n"; }
  std::string finished() override { return text_ + "</svg>\n"; }

 private:
  static std::string path(const std::vector<Point>& points) {
    std::string text;
    for (const Point& point : points)
      text += fmt::format("{}{:.2f} {:.2f}", text.empty() ? "M" : "L", point.x, point.y);
    return text;
  }

  std::string text_;
  int clips_ = 0;
};

}  // namespace

std::unique_ptr<Canvas> svg_canvas(const Paper& paper) { return std::make_unique<SvgCanvas>(paper); }

}  // namespace lockstep::chart
