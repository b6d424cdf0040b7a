// Formats measured numbers for text and axes. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chart/chart.h"
#include "lab/fields.h"
#include "report/observations.h"
#include "statistics/decision.h"

namespace lockstep::report {

/// Returns the field's title: "time of an epoch"; for a setting its name with spaces.
std::string field_title(std::string_view field);
/// Returns the title of an axis or a column: settings in words, "learning rate" for lr.
std::string axis_title(std::string_view field);
lab::Unit unit_of(std::string_view field);
chart::Axis axis_of(std::string_view field);
/// Formats a value for a sentence: "1.42 s", "91.8 %", "0.312".
std::string figure_text(double value, lab::Unit unit);

/// Formats a value with half its interval, if there is one: "98.91 ± 0.12 %", "1.42 s".
std::string spread_text(const statistics::Estimate& figure, lab::Unit unit);

/// Formats a change with its sign: "+1.2", "+0.0", never "-0.0".
std::string signed_text(double value, int digits);
/// Returns a text of the program as HTML: parts between backticks are code, and "us" behind a number is "µs".
std::string text_html(std::string_view text);

/// The format of a table column's numbers: one unit, and as many digits as needed.
struct ColumnFormat {
  double factor = 1;
  int digits = 0;
  std::string unit;      ///< for the head of the column; may be empty
  bool precise = false;  ///< a value far below the others gets more digits than they have: see precise_format()
};
/// `beside` are reported figures, which get the same format.
ColumnFormat column_format(const std::vector<double>& values, lab::Unit unit, const std::vector<double>& beside = {});
/// Returns the format for one value: with its third significant digit, even if the column's others are far larger.
ColumnFormat precise_format(double value, ColumnFormat format);
std::string column_text(double value, const ColumnFormat& format);

/// Returns the ids of tables or plots with these names, no two alike: "plot-two-axes" for a plot called "Two axes".
std::vector<std::string> part_ids(const std::string& kind, const std::vector<std::string>& names);

/// Returns the names of tables or plots.
template <typename Spec>
std::vector<std::string> names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.name);
  return names;
}

/// "accuracy" -> "Accuracy".
std::string capital(std::string text);
/// Returns the text with a capital at its beginning and a full stop at its end.
std::string sentence(std::string text);
/// "1 run", "2 runs".
std::string counted(size_t count, const std::string& noun);

}  // namespace lockstep::report
