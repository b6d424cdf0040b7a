// Writes tables as HTML, CSV, Markdown and LaTeX.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chart/chart.h"
#include "records/statistics.h"
#include "report/tables.h"

namespace lockstep::report {
namespace {

using chart::escape_html;
using records::known;

/// Returns how many columns from this one on stand under one title.
size_t width_of_pair(const std::vector<TableColumn>& columns, size_t begin) {
  size_t end = begin + 1;
  while (end < columns.size() && !columns[begin].part.empty() && columns[end].title == columns[begin].title &&
         columns[end].part != "measured" && !columns[end].part.empty()) {
    ++end;
  }
  return end - begin;
}

bool has_pairs(const Table& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [](const TableColumn& c) { return !c.part.empty(); });
}

std::string titled(const TableColumn& column) {
  return column.unit.empty() ? column.title : fmt::format("{} ({})", column.title, column.unit);
}

std::string head_html(const Table& table) {
  const bool two = has_pairs(table);
  std::string first;
  std::string second;
  for (size_t i = 0; i < table.columns.size();) {
    const TableColumn& column = table.columns[i];
    const size_t width = width_of_pair(table.columns, i);
    std::string title = escape_html(column.title);
    if (!column.unit.empty()) title += fmt::format(" <span class=\"faint\">({})</span>", escape_html(column.unit));
    std::string attributes = column.kind == CellKind::text ? " class=\"text\"" : "";
    attributes += two && column.part.empty() ? " rowspan=\"2\"" : "";
    if (!column.part.empty()) attributes = fmt::format(" colspan=\"{}\" class=\"pair\"", width);
    first += fmt::format("<th scope=\"col\"{}>{}</th>", attributes, title);
    for (size_t k = i; k < i + width && !column.part.empty(); ++k) {
      second += fmt::format("<th scope=\"col\">{}</th>", escape_html(table.columns[k].part));
    }
    i += width;
  }
  return "<thead><tr>" + first + "</tr>" + (two ? "<tr>" + second + "</tr>" : "") + "</thead>";
}

std::string cell_html(const TableCell& cell, CellKind kind) {
  std::string_view attributes;
  if (kind == CellKind::text) attributes = " class=\"text\"";
  if (kind == CellKind::reported) attributes = " class=\"reported\"";
  if (kind == CellKind::relation || kind == CellKind::runs) attributes = " class=\"faint\"";
  std::string html = fmt::format("<td{}>{}", attributes, escape_html(cell.text));
  if (!cell.aside.empty()) html += fmt::format(" <span class=\"sd\">{}</span>", escape_html(cell.aside));
  return html + "</td>";
}

std::string odd_html(const Table& table) {
  if (table.odd.empty()) return "";
  std::string html = "<p class=\"small\"><strong>Odd about the reported figures:</strong></p><ul class=\"small\">";
  for (const std::string& sentence : table.odd) html += "<li>" + escape_html(sentence) + "</li>";
  return html + "</ul>";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double value) { return known(value) ? fmt::format("{:.9g}", value) : ""; }

/// Joins the parts of a column's title: "test accuracy (%), reported".
std::string flat_title(const TableColumn& column) {
  return titled(column) + (column.part.empty() ? "" : ", " + column.part);
}

std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<' || c == '[') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string latex_text(std::string_view text) {
  // Characters that LaTeX's default encoding lacks, and its own special ones.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 21> kWords{{{"\\", "\\textbackslash{}"},
                                                                                  {"{", "\\{"},
                                                                                  {"}", "\\}"},
                                                                                  {"&", "\\&"},
                                                                                  {"%", "\\%"},
                                                                                  {"$", "\\$"},
                                                                                  {"#", "\\#"},
                                                                                  {"_", "\\_"},
                                                                                  {"~", "\\textasciitilde{}"},
                                                                                  {"^", "\\textasciicircum{}"},
                                                                                  {"<", "\\textless{}"},
                                                                                  {">", "\\textgreater{}"},
                                                                                  {"|", "\\textbar{}"},
                                                                                  {"\"", "''"},
                                                                                  {"\n", " "},
                                                                                  {"±", "$\\pm$"},
                                                                                  {"×", "$\\times$"},
                                                                                  {"µ", "$\\mu$"},
                                                                                  {"∞", "$\\infty$"},
                                                                                  {"–", "--"},
                                                                                  {"…", "\\dots{}"}}};
  std::string result;
  while (!text.empty()) {
    const auto* const found =
        std::find_if(kWords.begin(), kWords.end(), [&](const auto& word) { return text.starts_with(word.first); });
    const size_t length = found == kWords.end() ? 1 : found->first.size();
    result += found == kWords.end() ? text.substr(0, 1) : found->second;
    text.remove_prefix(length);
  }
  return result;
}

std::string with_aside(const TableCell& cell) { return cell.text + (cell.aside.empty() ? "" : " " + cell.aside); }

/// Returns the head of a LaTeX table: titles, and below those of several columns a rule and their parts.
std::string latex_head(const Table& table) {
  std::string first;
  std::string rules;
  std::string second;
  for (size_t i = 0; i < table.columns.size();) {
    const TableColumn& column = table.columns[i];
    const size_t width = width_of_pair(table.columns, i);
    const std::string title = latex_text(titled(column));
    first += (i == 0 ? "" : " & ") + (width > 1 ? fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", width, title) : title);
    if (width > 1) rules += fmt::format("\\cmidrule(lr){{{}-{}}}", i + 1, i + width);
    for (size_t k = i; k < i + width; ++k) second += (k == 0 ? "" : " & ") + latex_text(table.columns[k].part);
    i += width;
  }
  std::string head = "    " + first + " \\\\\n";
  if (has_pairs(table)) head += "    " + rules + "\n    " + second + " \\\\\n";
  return head;
}

}  // namespace

std::string table_html(const Table& table) {
  const std::string id = escape_html(table.id);
  std::string html =
      fmt::format("<div class=\"card\" id=\"{0}\"><h3 id=\"{0}-title\">{1}</h3>", id, escape_html(table.title));
  if (!table.text.empty()) html += "<p class=\"soft\">" + escape_html(table.text) + "</p>";
  if (!table.rows.empty()) {
    html += fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{0}-title\"><table class=\"data\" "
        "aria-labelledby=\"{0}-title\">",
        id);
    html += head_html(table) + "<tbody>";
    for (const std::vector<TableCell>& row : table.rows) {
      html += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) html += cell_html(row[i], table.columns[i].kind);
      html += "</tr>";
    }
    html += "</tbody></table></div>";
  }
  if (!table.below.empty()) html += "<p class=\"small soft\">" + escape_html(table.below) + "</p>";
  html += odd_html(table);
  if (!table.rows.empty()) {
    html += fmt::format("<div class=\"table-buttons no-print\" data-table=\"{}\"></div>", id);
  }
  return html + "</div>";
}

std::string table_csv(const Table& table) {
  std::string text;
  std::vector<bool> intervals;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    intervals.push_back(
        std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return known(row[i].half); }));
    text += (i == 0 ? "" : ",") + csv_cell(flat_title(table.columns[i]));
    if (intervals[i]) text += "," + csv_cell("± " + flat_title(table.columns[i]));
  }
  text += "\n";
  for (const std::vector<TableCell>& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool figure = table.columns[i].kind != CellKind::text && table.columns[i].kind != CellKind::relation;
      text += (i == 0 ? "" : ",") + (figure ? csv_number(row[i].value) : csv_cell(row[i].text));
      if (intervals[i]) text += "," + csv_number(row[i].half);
    }
    text += "\n";
  }
  return text;
}

std::string table_markdown(const Table& table) {
  std::string head = "|";
  std::string rule = "|";
  for (const TableColumn& column : table.columns) {
    head += fmt::format(" {} |", markdown_text(flat_title(column)));
    rule += column.kind == CellKind::text ? " :--- |" : " ---: |";
  }
  std::string text = fmt::format("**{}**\n\n{}\n{}\n", markdown_text(table.title), head, rule);
  for (const std::vector<TableCell>& row : table.rows) {
    text += "|";
    for (const TableCell& cell : row) text += fmt::format(" {} |", markdown_text(with_aside(cell)));
    text += "\n";
  }
  if (!table.below.empty()) text += "\n" + markdown_text(table.below) + "\n";
  for (const std::string& sentence : table.odd) {
    text += fmt::format("{}- odd about the reported figures: {}\n", &sentence == table.odd.data() ? "\n" : "",
                        markdown_text(sentence));
  }
  return text;
}

std::string table_latex(const Table& table) {
  std::string columns;
  for (const TableColumn& column : table.columns) columns += column.kind == CellKind::text ? 'l' : 'r';
  std::string text = fmt::format(
      "% needs \\usepackage{{booktabs}}\n\\begin{{table}}\n  \\centering\n  \\caption{{{}}}\n  \\label{{{}}}\n  "
      "\\begin{{tabular}}{{{}}}\n    \\toprule\n",
      latex_text(table.title), table.id, columns);
  text += latex_head(table) + "    \\midrule\n";
  for (const std::vector<TableCell>& row : table.rows) {
    text += "    ";
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : " & ") + latex_text(with_aside(row[i]));
    text += " \\\\\n";
  }
  return text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
}

}  // namespace lockstep::report
