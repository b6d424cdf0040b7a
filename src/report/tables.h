// The tables of a report: mean, half interval and number of runs of each row, with the reported figures. Free
// functions; one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "report/observations.h"

namespace lockstep::report {

enum class CellKind : uint8_t { text, measured, reported, relation, runs };

struct TableColumn {
  std::string title;  ///< "test accuracy"
  std::string unit;   ///< "%"; empty: none
  std::string part;   ///< "measured", "reported", "ratio"; empty: the column stands alone
  CellKind kind = CellKind::measured;
};

struct TableCell {
  std::string text;
  std::string aside = {};  ///< behind the text: "± 0.12", "mean of 2"
  double value = NAN;      ///< in the column's unit; NaN: a text, or unknown
  double half = NAN;       ///< half the interval, in the column's unit
};

struct Table {
  std::string id;  ///< unique in the report, usable as a file name
  std::string title;
  std::string text;  ///< below the title; may be empty
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> rows;
  std::string below;                  ///< what the means are over, and what is missing; without rows, why
  std::vector<std::string> odd = {};  ///< sentences about the reported figures themselves (anomalies.h)
};

Table table_of(const Material& material, const lab::TableSpec& spec, const std::string& id);

/// Returns a card with the table.
std::string table_html(const Table& table);
/// Writes figures unrounded, each with its half interval in a column of its own.
std::string table_csv(const Table& table);
std::string table_markdown(const Table& table);
/// Writes a table environment that needs the package booktabs.
std::string table_latex(const Table& table);

}  // namespace lockstep::report
