#include "chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::chart {

const char* embedded(std::string_view name);  // made by cmake/EmbedFiles.cmake

namespace {

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"line", "bar", "stack", "timeline"};
  return kNames.at(static_cast<size_t>(kind));
}

void add_text(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : base::as_utf8(text)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (code < 0x20 || code == 0x7f) {
      json += fmt::format("\\u{:04x}", code);
    } else {
      json += c;
    }
  }
  json += '"';
}

void add_number(std::string& json, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(json), "{:.6g}", value);
  } else {
    json += "null";
  }
}

/// Adds an x value; steps beyond a million need more than six digits.
void add_place(std::string& json, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(json), "{:.9g}", value);
  } else {
    json += "null";
  }
}

template <typename Item, typename Add>
void add_list(std::string& json, const std::vector<Item>& items, Add add) {
  json += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) json += ',';
    add(json, items[i]);
  }
  json += ']';
}

void add_key(std::string& json, std::string_view key) {
  if (json.back() != '{') json += ',';
  json += '"';
  json += key;
  json += "\":";
}

void add_pair(std::string& json, std::string_view key, std::string_view text) {
  add_key(json, key);
  add_text(json, text);
}

void add_axis(std::string& json, std::string_view key, const Axis& axis) {
  add_key(json, key);
  json += '{';
  add_pair(json, "label", axis.label);
  add_pair(json, "unit", axis.unit);
  if (axis.log) json += R"(,"log":true)";
  if (axis.at_values) json += R"(,"at_values":true)";
  if (!axis.categories.empty()) {
    add_key(json, "categories");
    add_list(json, axis.categories, add_text);
  }
  if (!axis.shows.empty()) {
    add_key(json, "shows");
    add_list(json, axis.shows, add_number);
  }
  json += '}';
}

void add_series(std::string& json, const Series& series) {
  json += '{';
  add_pair(json, "name", series.name);
  add_key(json, "x");
  add_list(json, series.x, add_place);
  add_key(json, "y");
  add_list(json, series.y, add_number);
  if (!series.low.empty() && !series.high.empty()) {
    add_key(json, "low");
    add_list(json, series.low, add_number);
    add_key(json, "high");
    add_list(json, series.high, add_number);
  }
  if (series.second_axis) json += R"(,"second_axis":true)";
  if (series.dashed) json += R"(,"dashed":true)";
  if (series.color >= 0) fmt::format_to(std::back_inserter(json), ",\"color\":{}", series.color);
  json += '}';
}

void add_mark(std::string& json, const Mark& mark) {
  json += R"({"x":)";
  add_place(json, mark.x);
  add_pair(json, "label", mark.label);
  json += '}';
}

void add_span(std::string& json, const Span& span) {
  fmt::format_to(std::back_inserter(json), R"({{"row":{},"from":)", span.row);
  add_place(json, span.from);
  json += R"(,"to":)";
  add_place(json, span.to);
  add_pair(json, "name", span.name);
  json += '}';
}

/// Writes the parts that a chart shares with its alternative data (Choice).
template <typename Data>
void add_data(std::string& json, const Data& data) {
  add_key(json, "series");
  add_list(json, data.series, add_series);
  add_key(json, "marks");
  add_list(json, data.marks, add_mark);
  add_key(json, "rows");
  add_list(json, data.rows, add_text);
  add_key(json, "spans");
  add_list(json, data.spans, add_span);
}

void add_choice(std::string& json, const Choice& choice) {
  json += '{';
  add_pair(json, "name", choice.name);
  add_data(json, choice);
  json += '}';
}

}  // namespace

std::string to_json(const Chart& chart) {
  std::string json = "{";
  add_pair(json, "id", chart.id);
  add_pair(json, "title", chart.title);
  add_pair(json, "text", chart.text);
  add_pair(json, "kind", name(chart.kind));
  add_axis(json, "x", chart.x);
  add_axis(json, "y", chart.y);
  add_axis(json, "y2", chart.y2);
  add_data(json, chart);
  if (chart.adjustable) json += R"(,"adjustable":true)";
  if (!chart.choice.empty()) add_pair(json, "choice", chart.choice);
  if (!chart.choices.empty()) {
    add_key(json, "choices");
    add_list(json, chart.choices, add_choice);
  }
  json += '}';
  return json;
}

std::string json_text(std::string_view text) {
  std::string json;
  add_text(json, text);
  return json;
}

std::string_view asset(std::string_view name) {
  const char* text = embedded(name);
  if (text == nullptr) throw Error("there is no page asset '" + std::string(name) + "'");
  return text;
}

std::pair<double, double> drawn_band(std::pair<double, double> curves, std::pair<double, double> bands, bool log) {
  if (log || !(curves.second > curves.first)) return bands;
  const double air = (curves.second - curves.first) / 2;
  return {std::max(bands.first, curves.first - air), std::min(bands.second, curves.second + air)};
}

std::string escape_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string escape_script(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<' || c == '>' || c == '&') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (json.substr(i, 3) == "\xe2\x80\xa8" || json.substr(i, 3) == "\xe2\x80\xa9") {
      result += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";  // line ends in older scripts
      i += 2;
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace lockstep::chart
