// Draws a chart as a file for papers and slides, without a browser: SVG, or PDF with text. The same series, scales and
// ticks as on a page; of charts with a choice, what is shown first. Free functions; any thread.
#pragma once

#include <string>

#include "chart/chart.h"

namespace lockstep::chart {

struct Look {
  double width_mm = 150;
  std::string font = "sans";  ///< a family; PDF has only sans, serif and mono (Helvetica, Times, Courier)
  bool title = true;          ///< with the title, which a paper has in its caption
};

/// Narrowest and widest drawing, in millimetres.
constexpr double kNarrowest = 40;
constexpr double kWidest = 1000;

/// These throw UsageError for a width or a font that they cannot use.
std::string drawn_as_svg(const Chart& chart, const Look& look);
std::string drawn_as_pdf(const Chart& chart, const Look& look);

}  // namespace lockstep::chart
