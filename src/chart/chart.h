// A chart as data: what the script chart.js draws as SVG in a page, of a report or of the dashboard. Plain values and
// free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::chart {

/// What numbers are, for axes and labels: "" (plain), "share" (0 to 1, shown in %), "percent", "s", "B", "B/s", "x".
struct Axis {
  std::string label;
  std::string unit;
  bool log = false;
  std::vector<std::string> categories = {};  ///< of an x axis of bars and stacks; x values are their places
  std::vector<double> shows = {};            ///< of a y axis: values that are within it, so that charts can be compared
};

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;         ///< NaN: a gap
  std::vector<double> low = {};  ///< of a band or of error bars; empty: none
  std::vector<double> high = {};
  bool second_axis = false;
  bool dashed = false;  ///< reported figures, ideal lines
  int color = -1;       ///< a place in the palette; -1: the next. Related series share one
};

/// A moment worth a line through the plot: a fault, a restart.
struct Mark {
  double x = 0;
  std::string label;
};

/// A stretch of a row of a timeline.
struct Span {
  size_t row = 0;
  double from = 0;
  double to = 0;
  std::string name;  ///< spans of one name share a colour: that of the series of this name, where there is one
};

/// Other data for the same chart, which the reader can choose: of another repeat of a run.
struct Choice {
  std::string name;
  std::vector<Series> series = {};
  std::vector<Mark> marks = {};
  std::vector<std::string> rows = {};
  std::vector<Span> spans = {};
};

enum class Kind : uint8_t { line, bar, stack, timeline };

struct Chart {
  std::string id;  ///< unique in a page, fit for a file name
  std::string title;
  std::string text;  ///< a sentence below the title; may be empty
  Kind kind = Kind::line;
  Axis x;
  Axis y;
  Axis y2;  ///< where series have it
  std::vector<Series> series;
  std::vector<Mark> marks = {};
  std::vector<std::string> rows = {};  ///< of a timeline
  std::vector<Span> spans = {};
  std::string choice = {};           ///< names what is drawn first, where it is one of several
  std::vector<Choice> choices = {};  ///< the others
};

/// As chart.js takes it (docs/formats.md). NaN and infinities are null; y values have six digits, x nine.
std::string to_json(const Chart& chart);

/// The parts of a page, as compiled in: "chart.js", "page.css", and "page.js", which lets a button with id "theme"
/// choose light or dark. Throws Error for a name that is not there.
std::string_view asset(std::string_view name);

/// Text in HTML, also within attributes.
std::string escape_html(std::string_view text);
/// JSON within a <script> element.
std::string escape_script(std::string_view json);

}  // namespace lockstep::chart
