// Small pictures in text: curves, bars, sparklines. No returned line is wider than asked for. Curves are drawn in
// Braille dots if the terminal can show them and tell them apart by colour, otherwise with one sign per curve. Free
// functions; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "records/statistics.h"
#include "terminal/terminal.h"

namespace lockstep::terminal {

struct Series {
  std::string name;
  records::Curve curve;
};

struct ChartOptions {
  std::string title;
  std::string x_label;
  size_t width = 60;  ///< total width, with the axis
  size_t height = 8;  ///< lines of the drawing; the title and the axis take three more
  std::function<std::string(double)> y_text = {};
  std::function<std::string(double)> x_text = {};
};

/// Returns the lines, each padded to the width; none if no series has points. Series without a name are not in the
/// legend.
std::vector<std::string> line_chart(const Terminal& terminal, const std::vector<Series>& series,
                                    const ChartOptions& options);

/// Returns the names of series with their signs, as lines of at most `width` columns.
std::vector<std::string> chart_legend(const Terminal& terminal, const std::vector<std::string>& names, size_t width);

/// Places two blocks of lines side by side if they fit into `width`, otherwise one below the other.
std::string beside(const std::vector<std::string>& left, const std::vector<std::string>& right, size_t width);

/// Returns one line of at most `columns` bars, scaled from the smallest value to the largest.
std::string sparkline(const Terminal& terminal, std::span<const double> values, size_t columns);

struct BarPart {
  char key = ' ';  ///< fills the part if there are no colours
  double share = 0;
  size_t colour = 0;
};

/// Draws parts of a whole; shares that add up to 1 fill all columns.
std::string stacked_bar(const Terminal& terminal, const std::vector<BarPart>& parts, size_t columns);

}  // namespace lockstep::terminal
