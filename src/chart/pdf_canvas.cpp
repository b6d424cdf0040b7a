// PDF 1.4: one page, text in the standard fonts, no compression, so that the file says the same at every time.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "chart/canvas.h"

namespace lockstep::chart {
namespace {

/// Names of the standard fonts: regular and bold.
std::array<const char*, 2> standard_names(Face face) {
  if (face == Face::serif) return {"Times-Roman", "Times-Bold"};
  if (face == Face::mono) return {"Courier", "Courier-Bold"};
  return {"Helvetica", "Helvetica-Bold"};
}

/// Writes a text as a PDF string, with escapes.
std::string pdf_string(std::string_view text) {
  std::string result = "(";
  for (const char c : in_win_ansi(text)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '(' || c == ')' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (code < ' ' || code > '~') {
      result += fmt::format("\\{:03o}", code);
    } else {
      result += c;
    }
  }
  return result + ")";
}

/// Writes "#006ecd" as three numbers from 0 to 1.
std::string pdf_color(const std::string& color) {
  std::string text;
  for (size_t i = 1; i + 1 < color.size(); i += 2) {
    text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", std::stoi(color.substr(i, 2), nullptr, 16) / 255.0);
  }
  return text;
}

class PdfCanvas : public Canvas {
 public:
  explicit PdfCanvas(const Paper& paper) : paper_(paper) {}

  void line(const std::vector<Point>& points, const Paint& paint) override {
    if (points.empty()) return;
    std::string dash;
    for (const double part : paint.dash) dash += fmt::format("{:g} ", part);
    draw_ += fmt::format("/{} gs {} RG {:g} w 1 j [{}] 0 d {}S\n", transparency(paint.opacity), pdf_color(paint.color),
                         paint.width, dash, path(points));
  }

  void area(const std::vector<Point>& points, const Paint& paint) override {
    if (points.empty()) return;
    draw_ += fmt::format("/{} gs {} rg {}f\n", transparency(paint.opacity), pdf_color(paint.color), path(points));
  }

  void text(const Words& words) override {
    const double width = text_width(paper_.font, words.text, words.size, words.bold);
    const double back = words.anchor == Anchor::start ? 0 : words.anchor == Anchor::middle ? width / 2 : width;
    const double angle = words.turned * std::numbers::pi / 180;
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    draw_ += fmt::format("/{} gs {} rg BT /{} {:g} Tf {:.4f} {:.4f} {:.4f} {:.4f} {:.2f} {:.2f} Tm {} Tj ET\n",
                         transparency(1), pdf_color(words.color), words.bold ? "F2" : "F1", words.size, c, s, -s, c,
                         words.at.x - back * c, paper_.height - words.at.y - back * s, pdf_string(words.text));
  }

  void clip(Point from, Point to) override {
    draw_ += fmt::format("q {:.2f} {:.2f} {:.2f} {:.2f} re W n\n", from.x, paper_.height - to.y, to.x - from.x,
                         to.y - from.y);
  }
  void unclip() override { draw_ += "Q\n"; }

  std::string finished() override {
    const auto [regular, bold] = standard_names(paper_.font.face);
    const auto font = [](const char* name) {
      return fmt::format("<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>", name);
    };
    std::string states;
    for (const auto& [opacity, name] : states_)
      states += fmt::format("/{} << /ca {} /CA {} >> ", name, opacity, opacity);
    add("<< /Type /Catalog /Pages 2 0 R >>");
    add("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    add(
        fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {:.2f} {:.2f}] /Contents 4 0 R /Resources << /Font << "
                    "/F1 5 0 R /F2 6 0 R >> /ExtGState << {}>> >> >>",
                    paper_.width, paper_.height, states));
    add(fmt::format("<< /Length {} >>\nstream\n{}endstream", draw_.size(), draw_));
    add(font(regular));
    add(font(bold));
    add(fmt::format("<< /Title {} /Producer (Lockstep) >>", pdf_string(paper_.title)));
    return whole();
  }

 private:
  [[nodiscard]] std::string path(const std::vector<Point>& points) const {
    std::string text;
    for (const Point& point : points) {
      text += fmt::format("{:.2f} {:.2f} {} ", point.x, paper_.height - point.y, text.empty() ? "m" : "l");
    }
    return text;
  }

  /// Returns the name of a graphics state with this opacity.
  std::string transparency(double opacity) {
    const auto [place, added] = states_.try_emplace(fmt::format("{:g}", opacity), "");
    if (added) place->second = fmt::format("G{}", states_.size());
    return place->second;
  }

  void add(const std::string& object) { objects_.push_back(object); }

  [[nodiscard]] std::string whole() const {
    std::string file = "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n";
    std::string table = fmt::format("xref\n0 {}\n0000000000 65535 f \n", objects_.size() + 1);
    for (size_t i = 0; i < objects_.size(); ++i) {
      table += fmt::format("{:010} 00000 n \n", file.size());
      file += fmt::format("{} 0 obj\n{}\nendobj\n", i + 1, objects_[i]);
    }
    const size_t place = file.size();
    return file + table +
           fmt::format("trailer\n<< /Size {} /Root 1 0 R /Info {} 0 R >>\nstartxref\n{}\n%%EOF\n", objects_.size() + 1,
                       objects_.size(), place);
  }

  Paper paper_;
  std::string draw_;
  std::map<std::string, std::string> states_;
  std::vector<std::string> objects_;
};

}  // namespace

std::unique_ptr<Canvas> pdf_canvas(const Paper& paper) { return std::make_unique<PdfCanvas>(paper); }

}  // namespace lockstep::chart
