#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/utf8.h"
#include "chart/canvas.h"
#include "lockstep/error.h"

namespace lockstep::chart {
namespace {

/// Widths of the characters from ' ' to '~' in thousandths of the size, from Adobe's metrics of the standard fonts.
constexpr std::array<int, 95> kSans = {278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
                                       556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
                                       1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
                                       667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
                                       333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
                                       556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};
constexpr std::array<int, 95> kSerif = {250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278,
                                        500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444,
                                        921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889, 722, 722,
                                        556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500,
                                        333, 444, 500, 444, 500, 444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500,
                                        500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480, 200, 480, 541};

constexpr int kEllipsis = 0x85;
constexpr double kBoldWider = 1.07;

int width_of(Face face, unsigned char code) {
  if (face == Face::mono) return 600;
  if (code >= ' ' && code <= '~') return (face == Face::sans ? kSans : kSerif).at(static_cast<size_t>(code - ' '));
  if (code == kEllipsis) return 1000;
  return face == Face::sans ? 556 : 500;
}

/// Returns the code of a character in Windows' Latin encoding.
char win_ansi(uint32_t character) {
  constexpr std::array<std::pair<uint32_t, int>, 15> kOthers{{{0x2013, 0x96},
                                                              {0x2014, 0x97},
                                                              {0x2018, 0x91},
                                                              {0x2019, 0x92},
                                                              {0x201c, 0x93},
                                                              {0x201d, 0x94},
                                                              {0x2022, 0x95},
                                                              {0x2026, kEllipsis},
                                                              {0x20ac, 0x80},
                                                              {0x2212, 0x96},
                                                              {0x2009, ' '},
                                                              {0x202f, ' '},
                                                              {0xa0, ' '},
                                                              {0x3bc, 0xb5},
                                                              {0x2009, ' '}}};
  for (const auto& [from, code] : kOthers) {
    if (character == from) return static_cast<char>(code);
  }
  const bool same = (character >= ' ' && character <= '~') || (character > 0xa0 && character <= 0xff);
  return same ? static_cast<char>(character) : '?';
}

}  // namespace

std::string in_win_ansi(std::string_view text) {
  const std::string utf8 = base::as_utf8(text);
  std::string result;
  for (size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t character = bytes == 1 ? lead : lead & (0xffU >> (bytes + 1));
    for (size_t k = 1; k < bytes && i + k < utf8.size(); ++k) {
      character = (character << 6U) | (static_cast<unsigned char>(utf8[i + k]) & 0x3fU);
    }
    result += win_ansi(character);
    i += bytes;
  }
  return result;
}

double text_width(const Font& font, std::string_view text, double size, bool bold) {
  double width = 0;
  for (const char c : in_win_ansi(text)) width += width_of(font.face, static_cast<unsigned char>(c));
  return width / 1000 * size * (bold ? kBoldWider : 1);
}

Font font_called(const std::string& name) {
  std::string lower;
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    if (code > 0x7f || (std::isalnum(code) == 0 && c != ' ' && c != '-')) {
      throw UsageError(fmt::format("font '{}': a name has letters, digits, spaces and hyphens", base::as_utf8(name)));
    }
    lower += static_cast<char>(std::tolower(code));
  }
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* one) { return lower == one; });
  };
  if (is({"", "sans", "sans-serif", "helvetica", "arial"})) return {"Helvetica, Arial, sans-serif", Face::sans};
  if (is({"serif", "times", "times new roman", "times-roman"})) return {"Times New Roman, Times, serif", Face::serif};
  if (is({"mono", "monospace", "courier", "courier new"})) return {"Courier New, Courier, monospace", Face::mono};
  return {name + ", sans-serif", Face::sans, false};
}

}  // namespace lockstep::chart
