// A chart as data, which the script chart.js draws as SVG in a report or on the dashboard. Plain values and free
// functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::chart {

/// The unit of numbers, for axes and labels: "" (plain), "share" (0 to 1, shown in %), "percent", "s", "B", "B/s", "x".
struct Axis {
  std::string label;
  std::string unit;
  bool log = false;
  std::vector<std::string> categories =
      {};                          ///< categories of an x axis of bars and stacks; x values are their positions
  std::vector<double> shows = {};  ///< values that the axis must include, so that charts can be compared
  bool at_values = false;          ///< ticks at the values themselves, if they are few: batch sizes, numbers of nodes
};

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;         ///< NaN: a gap
  std::vector<double> low = {};  ///< lower end of a band or of error bars; empty: none
  std::vector<double> high = {};
  bool second_axis = false;
  bool dashed = false;  ///< reported figures, ideal lines
  int color = -1;       ///< position in the palette; -1: the next one. Related series share one
};

/// A moment marked by a line through the plot: a fault, a restart.
struct Mark {
  double x = 0;
  std::string label;
};

/// A span of time in a row of a timeline.
struct Span {
  size_t row = 0;
  double from = 0;
  double to = 0;
  std::string name;  ///< spans of one name share a colour: that of the series with this name, if there is one
};

/// Alternative data of the same chart, for the reader to choose: another repeat of a run.
struct Choice {
  std::string name;
  std::vector<Series> series = {};
  std::vector<Mark> marks = {};
  std::vector<std::string> rows = {};
  std::vector<Span> spans = {};
};

enum class Kind : uint8_t { line, bar, stack, timeline };

struct Chart {
  std::string id;  ///< unique in a page, usable as a file name
  std::string title;
  std::string text;  ///< sentence below the title; may be empty
  Kind kind = Kind::line;
  Axis x;
  Axis y;
  Axis y2;  ///< second axis; used by series that ask for it
  std::vector<Series> series;
  std::vector<Mark> marks = {};
  std::vector<std::string> rows = {};  ///< rows of a timeline
  std::vector<Span> spans = {};
  bool adjustable = false;           ///< the reader may choose a logarithmic y axis and smoothing
  std::string choice = {};           ///< name of the data drawn first, if there are alternatives
  std::vector<Choice> choices = {};  ///< the alternatives
};

/// Returns the JSON that chart.js takes (docs/formats.md). NaN and infinities become null; y values have six digits, x
/// values nine.
std::string to_json(const Chart& chart);

/// Returns a compiled-in asset of a page: "chart.js", "page.css", or "page.js", which lets a button with id "theme"
/// choose light or dark. Throws Error for any other name.
std::string_view asset(std::string_view name);

/// Returns a text as a JSON string.
std::string json_text(std::string_view text);
/// Escapes text for HTML, also for attributes.
std::string escape_html(std::string_view text);

/// Returns the part of the intervals that a chart of curves shows. Wide intervals of few repeats would make the curves
/// flat, so the chart goes beyond the curves by at most half of their own range.
std::pair<double, double> drawn_band(std::pair<double, double> curves, std::pair<double, double> bands, bool log);

/// Escapes JSON for a <script> element.
std::string escape_script(std::string_view json);

}  // namespace lockstep::chart
