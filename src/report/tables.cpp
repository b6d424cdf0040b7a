#include "report/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "records/statistics.h"
#include "report/anomalies.h"
#include "report/figures.h"
#include "report/judgement.h"
#include "report/reported.h"

namespace lockstep::report {
namespace {

using records::known;

struct Column {
  std::string field;
  bool text = false;      ///< a given value, not a measured one
  bool reported = false;  ///< has a reported figure of the study
  bool related = false;   ///< has their ratio or difference, too
  ColumnFormat format;
};

struct Row {
  const Case* from = nullptr;
  std::vector<size_t> reported;
};

/// Sorts rows by number if a key's values are numbers; otherwise keeps their order.
void sort_rows(std::vector<Case>& cases, size_t fields) {
  for (size_t place = fields; place-- > 0;) {
    std::vector<std::string> seen;
    for (const Case& each : cases) {
      if (std::find(seen.begin(), seen.end(), each.key[place]) == seen.end()) seen.push_back(each.key[place]);
    }
    const bool numbers =
        std::all_of(seen.begin(), seen.end(), [](const std::string& s) { return known(number_of(s)); });
    const auto rank = [&](const Case& each) {
      if (numbers) return number_of(each.key[place]);
      return static_cast<double>(std::find(seen.begin(), seen.end(), each.key[place]) - seen.begin());
    };
    std::stable_sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) { return rank(a) < rank(b); });
  }
}

/// Returns whether figures can be set against reported ones: the quick form trains too little.
bool is_comparable(const Material& material) { return material.results().experiment.scale != "quick"; }

std::vector<Column> columns_of(const lab::TableSpec& spec, const std::vector<Row>& rows, const Reported& reported,
                               bool comparable) {
  std::vector<Column> columns;
  for (const std::string& field : spec.columns) {
    Column column{.field = field, .text = false, .reported = false, .related = false, .format = {}};
    std::vector<double> values;
    std::vector<double> figures;
    for (const Row& row : rows) {
      values.push_back(row.from->stat(field).mean);
      figures.push_back(reported.mean(row.reported, field));
    }
    column.reported = std::any_of(figures.begin(), figures.end(), known);
    column.related = column.reported && comparable;
    const bool any = std::any_of(values.begin(), values.end(), known);
    column.text = !any && lab::find_field(field) == nullptr;
    column.format = column_format(values, unit_of(field), figures);
    columns.push_back(std::move(column));
  }
  return columns;
}

/// Returns the columns as they are written: each measured one with its reported figures beside it.
std::vector<TableColumn> written_columns(const lab::TableSpec& spec, const std::vector<Column>& columns) {
  std::vector<TableColumn> written;
  for (const std::string& field : spec.rows) written.push_back({axis_title(field), "", "", CellKind::text});
  for (const Column& column : columns) {
    const std::string title = field_title(column.field);
    const std::string unit = column.text ? "" : column.format.unit;
    const CellKind kind = column.text ? CellKind::text : CellKind::measured;
    written.push_back({title, unit, column.reported ? "measured" : "", kind});
    if (column.reported) written.push_back({title, unit, "reported", CellKind::reported});
    if (!column.related) continue;
    const bool share = unit_of(column.field) == lab::Unit::share;
    written.push_back({title, unit, share ? "difference" : "ratio", CellKind::relation});
  }
  written.push_back({"runs", "", "", CellKind::runs});
  return written;
}

/// Shows the mean with half its interval: of the longer side, where a ratio's interval has two.
TableCell measured_cell(const statistics::Estimate& figure, const ColumnFormat& of_column) {
  const ColumnFormat format = precise_format(figure.value, of_column);
  TableCell cell{column_text(figure.value, format), "", figure.value * format.factor};
  const double half = std::max(figure.high - figure.value, figure.value - figure.low);
  if (figure.has_interval() && figure.repeats > 1) {
    if (half > 0) cell.aside = fmt::format("± {}", std::isinf(half) ? "∞" : column_text(half, format));
    cell.half = half * format.factor;
  }
  return cell;
}

std::string relation(double measured, double reported, lab::Unit unit) {
  if (!known(measured) || !known(reported)) return "";
  if (unit == lab::Unit::share) return signed_text((measured - reported) * 100, 2) + " pp";
  if (reported == 0) return "";
  const double ratio = measured / reported;
  return ratio >= 100 ? fmt::format("{:.0f}", ratio) : fmt::format("{:.{}g}", ratio, 2);
}

void add_reported(const Column& column, double measured, const Row& row, const Reported& reported,
                  std::vector<TableCell>& cells) {
  const double figure = reported.mean(row.reported, column.field);
  const auto rows = std::count_if(row.reported.begin(), row.reported.end(),
                                  [&](size_t each) { return known(reported.number(each, column.field)); });
  // Uses the column's unit if the figure is readable in it: "0.00 GB/s" says nothing.
  TableCell cell{"", "", figure * column.format.factor};
  if (known(figure)) {
    const double shown = std::fabs(figure * column.format.factor);
    const bool readable = figure == 0 || (shown >= 0.5 * std::pow(10.0, -column.format.digits) * 10 && shown < 1e6);
    cell.text = readable ? column_text(figure, precise_format(figure, column.format))
                         : figure_text(figure, unit_of(column.field));
  }
  if (rows > 1) cell.aside = fmt::format("mean of {}", rows);
  cells.push_back(std::move(cell));
  if (column.related) cells.push_back({relation(measured, figure, unit_of(column.field))});
}

std::vector<TableCell> cells_of(const Row& row, const std::vector<Column>& columns, const Reported& reported) {
  std::vector<TableCell> cells;
  for (const std::string& value : row.from->key) cells.push_back({value.empty() ? "–" : value});
  std::set<const lab::RunResult*> runs;
  for (const Observation& member : row.from->members) runs.insert(member.run);
  for (const Column& column : columns) {
    if (column.text) {
      cells.push_back({row.from->members.front().text(column.field)});
      continue;
    }
    cells.push_back(measured_cell(estimate_of(row.from->members, column.field), column.format));
    if (column.reported) add_reported(column, row.from->stat(column.field).mean, row, reported, cells);
  }
  cells.push_back({fmt::format("{}", runs.size()), "", static_cast<double>(runs.size())});
  return cells;
}

/// Returns a note if means are not over repeats alone.
std::string pooled_note(const std::vector<Case>& cases) {
  const std::string pooled = pooled_text(cases);
  return pooled.empty() ? "" : fmt::format("Means are over {}, intervals over repeats. ", pooled);
}

/// Says that figures which vary have no interval, and which values lie far from the others of their repeats.
std::string repeats_note(const std::vector<Case>& cases, const Fields& columns) {
  constexpr size_t kMostNamed = 4;
  bool alone = false;
  std::vector<std::string> far;
  for (const Case& each : cases) {
    for (const std::string& field : columns) {
      const statistics::Repeats repeats = repeats_of(each.members, field);
      alone = alone || (repeats.size() == 1 && !is_exact(each.members, field));
      std::vector<double> values;
      std::vector<int> numbers;
      for (const auto& [repeat, value] : repeats) {
        numbers.push_back(repeat);
        values.push_back(value);
      }
      for (const size_t place : statistics::outliers(values)) {
        far.push_back(fmt::format("{} of {}, repeat {} ({})", field_title(field), title_of(*each.members.front().run),
                                  numbers[place], figure_text(values[place], unit_of(field))));
      }
    }
  }
  std::string text = alone ? "Figures of one run have no interval. " : "";
  if (far.empty()) return text;
  const size_t more = far.size() > kMostNamed ? far.size() - kMostNamed : 0;
  far.resize(far.size() - more);
  return text + fmt::format("Outliers, which count like all others: {}{}. ", fmt::join(far, "; "),
                            more > 0 ? fmt::format("; {} more", more) : "");
}

std::string notes(const lab::TableSpec& spec, const std::vector<Row>& rows, const Reported& reported,
                  const std::string& missing, bool comparable) {
  std::string text;
  if (!missing.empty()) text += missing + " ";
  if (!reported.empty()) {
    std::set<size_t> used;
    for (const Row& row : rows) used.insert(row.reported.begin(), row.reported.end());
    text += fmt::format("Reported figures are from {}", spec.reported);
    const size_t left = reported.size() - used.size();
    text += left > 0 ? fmt::format("; {} of its {} rows {} no counterpart here.", left, reported.size(),
                                   left == 1 ? "has" : "have")
                     : ".";
    if (!comparable) text += " They are not comparable with this quick form, which trains less.";
  }
  return text;
}

/// Returns whether the measured values of these reported rows' counterparts are all the same; nothing if fewer than two
/// are known.
std::optional<bool> same_measured(const std::vector<Row>& rows, const std::string& field,
                                  const std::vector<size_t>& reported) {
  std::vector<double> values;
  for (const Row& row : rows) {
    const bool wanted = std::any_of(row.reported.begin(), row.reported.end(), [&](size_t each) {
      return std::find(reported.begin(), reported.end(), each) != reported.end();
    });
    const double value = wanted ? row.from->stat(field).mean : records::kUnknown;
    if (known(value)) values.push_back(value);
  }
  if (values.size() < 2) return std::nullopt;
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

/// Returns what is odd about the reported figures themselves.
std::vector<std::string> odd_figures(const lab::TableSpec& spec, const std::vector<Row>& rows,
                                     const Reported& reported) {
  return anomalies({reported, spec.rows, spec.columns, [&](const std::string& field, const std::vector<size_t>& which) {
                      return same_measured(rows, field, which);
                    }});
}

}  // namespace

Table table_of(const Material& material, const lab::TableSpec& spec, const std::string& id) {
  std::vector<Case> cases = cases_by(material.observations(spec.filter, spec.per), spec.rows);
  sort_rows(cases, spec.rows.size());
  const Reported reported(lab::value_of(material.results().experiment.reported, spec.reported), spec.reported_columns,
                          spec.reported_where);
  std::vector<Row> rows;
  for (const Case& each : cases) rows.push_back({&each, reported.rows(spec.rows, each.key)});
  Table table{
      id, spec.title.empty() ? capital(spec.name) : spec.title, spec.text.empty() ? "" : sentence(spec.text), {}, {},
      ""};
  const std::string missing = material.missing_text(spec.filter);
  table.odd = odd_figures(spec, rows, reported);
  if (rows.empty()) {
    table.below = "No run of this table is done yet. " + missing;
    return table;
  }
  const std::vector<Column> columns = columns_of(spec, rows, reported, is_comparable(material));
  table.columns = written_columns(spec, columns);
  for (const Row& row : rows) table.rows.push_back(cells_of(row, columns, reported));
  const std::string disturbed = disturbed_note(material.observations(spec.filter), spec.columns);
  table.below = (disturbed.empty() ? "" : disturbed + " ") + pooled_note(cases) + repeats_note(cases, spec.columns) +
                notes(spec, rows, reported, missing, is_comparable(material));
  while (table.below.ends_with(' ')) table.below.pop_back();
  return table;
}

}  // namespace lockstep::report
