// The colours of pages in page.css: they stand out from their background, and people with any usual kind of colour
// vision can tell the series apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "chart/chart.h"

namespace lockstep::chart {
namespace {

using Numbers = std::array<double, 3>;
using Matrix = std::array<Numbers, 3>;

constexpr size_t kSeries = 8;
constexpr double kLeastGraphic = 3;  // WCAG 2.1, 1.4.11: graphics
constexpr double kLeastText = 4.5;   // 1.4.3
constexpr double kLeastNeighbours = 14;
constexpr double kLeastAny = 10;

struct Sight {
  const char* name;
  Matrix of_linear;
};

// Matrices for linear RGB: Machado, Oliveira and Fernandes 2009, full deficiency.
constexpr std::array<Sight, 4> kSights{{
    {"usual", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}},
}};

enum Theme : uint8_t { light, dark };

/// Converts "#rrggbb" to linear light.
Numbers linear(const std::string& hex) {
  Numbers result{};
  for (size_t i = 0; i < 3; ++i) {
    const double value = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    result[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return result;
}

/// Returns a colour of the page, such as "series-0".
std::string color(const std::string& name, Theme theme) {
  const std::string page(asset("page.css"));
  const std::string begin = "--" + name + ": light-dark(";
  const size_t at = page.find(begin);
  if (at == std::string::npos) throw std::runtime_error("page.css has no " + name);
  const std::string both = page.substr(at + begin.size(), 16);  // "#rrggbb, #rrggbb"
  return theme == light ? both.substr(0, 7) : both.substr(9, 7);
}

Numbers times(const Matrix& matrix, const Numbers& vector) {
  Numbers result{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) result[row] += matrix[row][column] * vector[column];
    result[row] = std::clamp(result[row], 0.0, 1.0);
  }
  return result;
}

double contrast(const std::string& a, const std::string& b) {
  const auto brightness = [](const std::string& hex) {
    const Numbers rgb = linear(hex);
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] + 0.05;
  };
  const auto [low, high] = std::minmax({brightness(a), brightness(b)});
  return high / low;
}

/// Converts to CIE 1976 L*a*b* under daylight (D65).
Numbers lab(const Numbers& rgb) {
  constexpr Matrix kToXyz{
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  constexpr Numbers kWhite{0.95047, 1, 1.08883};
  Numbers f{};
  for (size_t row = 0; row < 3; ++row) {
    double value = 0;
    for (size_t column = 0; column < 3; ++column) value += kToXyz[row][column] * rgb[column];
    value /= kWhite[row];
    f[row] = value > 216.0 / 24389 ? std::cbrt(value) : (24389.0 / 27 * value + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

/// Returns the CIEDE2000 difference. About 1 is the smallest visible one for two colours that touch.
double distance(Numbers p, Numbers q) {
  constexpr double kPower = 6103515625;  // 25^7
  const double chroma = (std::hypot(p[1], p[2]) + std::hypot(q[1], q[2])) / 2;
  const double stretch = 1.5 - 0.5 * std::sqrt(std::pow(chroma, 7) / (std::pow(chroma, 7) + kPower));
  p[1] *= stretch;
  q[1] *= stretch;
  const double c1 = std::hypot(p[1], p[2]);
  const double c2 = std::hypot(q[1], q[2]);
  const auto hue = [](const Numbers& x) {
    const double degrees = std::atan2(x[2], x[1]) * 180 / std::numbers::pi;
    return degrees < 0 ? degrees + 360 : degrees;
  };
  const double h1 = hue(p);
  const double h2 = hue(q);
  double turn = c1 * c2 == 0 ? 0 : h2 - h1;
  if (turn > 180) turn -= 360;
  if (turn < -180) turn += 360;
  double middle = h1 + turn / 2;
  if (c1 * c2 == 0) middle = h1 + h2;
  if (middle < 0) middle += 360;
  if (middle >= 360) middle -= 360;
  const double dl = q[0] - p[0];
  const double dc = c2 - c1;
  const double dh = 2 * std::sqrt(c1 * c2) * std::sin(radians(turn / 2));
  const double l50 = std::pow((p[0] + q[0]) / 2 - 50, 2);
  const double mean = (c1 + c2) / 2;
  const double t = 1 - 0.17 * std::cos(radians(middle - 30)) + 0.24 * std::cos(radians(2 * middle)) +
                   0.32 * std::cos(radians(3 * middle + 6)) - 0.2 * std::cos(radians(4 * middle - 63));
  const double sl = 1 + 0.015 * l50 / std::sqrt(20 + l50);
  const double sc = 1 + 0.045 * mean;
  const double sh = 1 + 0.015 * mean * t;
  const double rotation = -std::sin(radians(60 * std::exp(-std::pow((middle - 275) / 25, 2)))) * 2 *
                          std::sqrt(std::pow(mean, 7) / (std::pow(mean, 7) + kPower));
  return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(dh / sh, 2) + rotation * dc / sc * dh / sh);
}

double distance(const std::string& a, const std::string& b, const Sight& sight) {
  return distance(lab(times(sight.of_linear, linear(a))), lab(times(sight.of_linear, linear(b))));
}

std::string series(size_t index, Theme theme) { return color("series-" + std::to_string(index), theme); }

TEST(Palette, DistancesAreThoseOfThePublishedExamples) {
  EXPECT_NEAR(distance({50, 2.6772, -79.7751}, {50, 0, -82.7485}), 2.0425, 1e-4);
  EXPECT_NEAR(distance({50, 2.5, 0}, {73, 25, -18}), 27.1492, 1e-4);
  EXPECT_NEAR(distance({50, 2.5, 0}, {50, 0, -2.5}), 4.3065, 1e-4);
  EXPECT_NEAR(distance({22.7233, 20.0904, -46.6940}, {23.0331, 14.9730, -42.5619}), 2.0373, 1e-4);
  EXPECT_NEAR(contrast("#ffffff", "#000000"), 21, 1e-9);
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.48, 0.005);
}

TEST(Palette, SeriesStandOutFromWhatIsBehindThem) {
  for (const Theme theme : {light, dark}) {
    for (const char* behind : {"surface", "raised"}) {
      for (size_t i = 0; i < kSeries; ++i) {
        EXPECT_GE(contrast(series(i, theme), color(behind, theme)), kLeastGraphic)
            << "series " << i << " on " << behind << (theme == light ? ", light" : ", dark");
      }
    }
  }
}

TEST(Palette, SeriesAreToldApartByEveryone) {
  for (const Theme theme : {light, dark}) {
    for (const Sight& sight : kSights) {
      for (size_t i = 0; i < kSeries; ++i) {
        for (size_t k = i + 1; k < kSeries; ++k) {
          const bool neighbours = k == i + 1 || (i == 0 && k == kSeries - 1);  // the ninth has the first colour
          EXPECT_GE(distance(series(i, theme), series(k, theme), sight), neighbours ? kLeastNeighbours : kLeastAny)
              << "series " << i << " and " << k << ", " << sight.name << (theme == light ? ", light" : ", dark");
        }
      }
    }
  }
}

TEST(Palette, TextIsReadable) {
  struct Pair {
    const char* text;
    const char* behind;
  };
  constexpr std::array kPairs{
      Pair{"text", "back"},      Pair{"text", "surface"},      Pair{"text", "raised"},  Pair{"text", "mute-soft"},
      Pair{"soft", "back"},      Pair{"soft", "surface"},      Pair{"soft", "raised"},  Pair{"soft", "mute-soft"},
      Pair{"faint", "back"},     Pair{"faint", "surface"},     Pair{"faint", "raised"}, Pair{"faint", "mute-soft"},
      Pair{"accent", "back"},    Pair{"accent", "surface"},    Pair{"good", "surface"}, Pair{"good", "good-soft"},
      Pair{"warn", "surface"},   Pair{"warn", "warn-soft"},    Pair{"bad", "surface"},  Pair{"bad", "bad-soft"},
      Pair{"surface", "accent"}, Pair{"accent", "accent-soft"}};
  for (const Theme theme : {light, dark}) {
    for (const Pair& pair : kPairs) {
      EXPECT_GE(contrast(color(pair.text, theme), color(pair.behind, theme)), kLeastText)
          << pair.text << " on " << pair.behind << (theme == light ? ", light" : ", dark");
    }
  }
}

}  // namespace
}  // namespace lockstep::chart
