// Measured numbers as text and on axes. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chart/chart.h"
#include "lab/fields.h"
#include "report/observations.h"

namespace lockstep::report {

/// "time of an epoch"; a setting is called by its name with spaces.
std::string field_title(std::string_view field);
lab::Unit unit_of(std::string_view field);
chart::Axis axis_of(std::string_view field);
/// In a sentence: "1.42 s", "91.8 %", "0.312".
std::string figure_text(double value, lab::Unit unit);

/// How the numbers of a table's column are written: in one unit, with as many digits as they need.
struct ColumnFormat {
  double factor = 1;
  int digits = 0;
  std::string unit;  ///< for the head of the column; may be empty
};
/// `beside`: reported figures, which are written likewise.
ColumnFormat column_format(const std::vector<double>& values, lab::Unit unit, const std::vector<double>& beside = {});
std::string column_text(double value, const ColumnFormat& format);

/// "accuracy" -> "Accuracy".
std::string capital(std::string text);
/// "1 run", "2 runs".
std::string counted(size_t count, const std::string& noun);

}  // namespace lockstep::report
