#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "records/format.h"
#include "records/statistics.h"

namespace lockstep::report {
namespace {

using lab::Unit;

constexpr double kWideRange = 30;

struct Size {
  double from;
  const char* letter;
};
constexpr std::array<Size, 4> kSizes = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};

std::string plain_text(double value) {
  const double size = std::fabs(value);
  if (value == 0) return "0";
  if (size >= 1e3 || (std::floor(value) == value && size >= 1)) return records::count_text(value);
  const int digits = std::clamp(3 - static_cast<int>(std::floor(std::log10(size))) - 1, 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

/// Formats all shares with the same decimals, since they stand side by side.
std::string accurate_share(double share) {
  return share == 0 || share == 1 ? fmt::format("{:.0f} %", share * 100) : fmt::format("{:.2f} %", share * 100);
}

/// Formats a time as pages and charts do.
std::string time_text(double seconds) {
  if (seconds >= 0.9995 && seconds < 100) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  std::string text = records::time_text(seconds);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 2, "µs");
  return text;
}

}  // namespace

std::string field_title(std::string_view field) {
  if (const lab::FieldDef* def = lab::find_field(field)) return std::string(def->title);
  std::string name(field);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
  return name;
}

Unit unit_of(std::string_view field) {
  const lab::FieldDef* def = lab::find_field(field);
  return def == nullptr ? Unit::none : def->unit;
}

std::string axis_title(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kWords{{{"batch", "batch size"},
                                                                            {"lr", "learning rate"},
                                                                            {"ps", "parameter servers"},
                                                                            {"accumulate", "batches per step"},
                                                                            {"label", "case"},
                                                                            {"mode", "way of updating"}}};
  for (const auto& [name, words] : kWords) {
    if (field == name) return words;
  }
  return field_title(field);
}

chart::Axis axis_of(std::string_view field) {
  constexpr std::array<const char*, 8> kUnits{"", "share", "s", "B", "B/s", "percent", "", "x"};
  return {axis_title(field), kUnits.at(static_cast<size_t>(unit_of(field)))};
}

std::string figure_text(double value, Unit unit) {
  if (!records::known(value)) return "?";
  switch (unit) {
    case Unit::share:
      return accurate_share(value);
    case Unit::percent:
      return records::percent_text(value);
    case Unit::seconds:
      return time_text(value);
    case Unit::bytes:
      return records::amount_text(value);
    case Unit::bytes_per_second:
      return records::speed_text(value);
    case Unit::times:
      return fmt::format("{:.2f}", value);
    case Unit::none:
    case Unit::count:
      break;
  }
  return plain_text(value);
}

std::string spread_text(const statistics::Estimate& figure, Unit unit) {
  const double half = std::max(figure.high - figure.value, figure.value - figure.low);
  if (!figure.has_interval() || figure.repeats < 2 || !std::isfinite(half)) {
    return figure_text(figure.value, unit) + (unit == Unit::times ? " ×" : "");
  }
  const ColumnFormat format = column_format({figure.value}, unit);
  if (half == 0)
    return fmt::format("{}{}{}", column_text(figure.value, format), format.unit.empty() ? "" : " ", format.unit);
  // Of large numbers, digits far below the spread say nothing: 2,030,000 ± 460,000.
  const double step = format.digits == 0 ? std::pow(10, std::floor(std::log10(half * format.factor)) - 1) : 0;
  if (step > 1) {
    const auto rounded = [&](double value) { return std::round(value * format.factor / step) * step / format.factor; };
    return fmt::format("{} ± {}{}{}", column_text(rounded(figure.value), format), column_text(rounded(half), format),
                       format.unit.empty() ? "" : " ", format.unit);
  }
  return fmt::format("{} ± {}{}{}", column_text(figure.value, format), column_text(half, format),
                     format.unit.empty() ? "" : " ", format.unit);
}

std::string signed_text(double value, int digits) {
  std::string text = fmt::format("{:+.{}f}", value, digits);
  if (text.find_first_not_of("-0.") == std::string::npos) text[0] = '+';
  return text;
}

std::string text_html(std::string_view text) {
  constexpr std::string_view kMicro = " us";
  std::string html = chart::escape_html(text);
  for (size_t at = html.find(kMicro); at != std::string::npos; at = html.find(kMicro, at + 1)) {
    const size_t end = at + kMicro.size();
    const bool ends = end == html.size() || std::isalnum(static_cast<unsigned char>(html[end])) == 0;
    if (ends && at > 0 && std::isdigit(static_cast<unsigned char>(html[at - 1])) != 0) html.replace(at + 1, 1, "µ");
  }
  for (bool open = true; html.find('`') != std::string::npos; open = !open) {
    html.replace(html.find('`'), 1, open ? "<code>" : "</code>");
  }
  return html;
}

ColumnFormat column_format(const std::vector<double>& values, Unit unit, const std::vector<double>& beside) {
  double largest = 0;
  double smallest = INFINITY;  // smallest value other than zero
  for (const double value : values) {
    if (!records::known(value)) continue;
    largest = std::max(largest, std::fabs(value));
    if (value != 0) smallest = std::min(smallest, std::fabs(value));
  }
  if (unit == Unit::share) return {100, largest > 0 && smallest > 0.5 ? 2 : 1, "%"};
  if (unit == Unit::percent) return {1, 1, "%"};
  if (unit == Unit::times) return {1, 2, "×"};
  ColumnFormat format;
  if (unit == Unit::seconds) {
    for (const double value : beside) largest = records::known(value) ? std::max(largest, value) : largest;
    format.unit = largest >= 1 || largest == 0 ? "s" : largest >= 1e-3 ? "ms" : "µs";
    format.factor = format.unit == "s" ? 1 : format.unit == "ms" ? 1e3 : 1e6;
  } else if (unit == Unit::bytes || unit == Unit::bytes_per_second) {
    const auto size = std::find_if(kSizes.begin(), kSizes.end(), [&](const Size& s) { return largest >= s.from; });
    format.factor = size == kSizes.end() ? 1 : 1 / size->from;
    format.unit = std::string(size == kSizes.end() ? "" : size->letter) + (unit == Unit::bytes ? "B" : "B/s");
  }
  const bool whole = unit == Unit::count && std::all_of(values.begin(), values.end(), [](double value) {
                       return !records::known(value) || std::floor(value) == value;
                     });
  if (whole || largest == 0 || std::isinf(smallest)) return format;
  format.precise = true;
  const auto three_digits = [&](double value) {
    return 2 - static_cast<int>(std::floor(std::log10(value * format.factor)));
  };
  // The smallest value of a wide range is not worth three decimals beside all the others.
  const bool wide = smallest < largest / kWideRange;
  format.digits =
      std::clamp(wide ? std::min(three_digits(smallest), three_digits(largest) + 1) : three_digits(smallest), 0, 3);
  if (unit == Unit::none && largest < 1) format.digits = 4;
  return format;
}

ColumnFormat precise_format(double value, ColumnFormat format) {
  const double shown = std::fabs(value * format.factor);
  if (!format.precise || std::floor(shown) == shown || !std::isfinite(shown)) return format;
  constexpr int kMostDigits = 6;
  format.digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(shown))), format.digits, kMostDigits);
  return format;
}

std::string column_text(double value, const ColumnFormat& format) {
  if (!records::known(value)) return "–";
  const double shown = value * format.factor;
  return format.digits == 0 ? records::count_text(shown) : fmt::format("{:.{}f}", shown, format.digits);
}

namespace {

std::string part_id(const std::string& kind, std::string_view name) {
  std::string result;
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    if (std::isalnum(code) != 0 && code < 0x80) {
      result += static_cast<char>(std::tolower(code));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return kind + "-" + (result.empty() ? "part" : result);
}

}  // namespace

std::vector<std::string> part_ids(const std::string& kind, const std::vector<std::string>& names) {
  std::vector<std::string> ids;
  for (const std::string& name : names) {
    const std::string plain = part_id(kind, name);
    std::string id = plain;
    for (int number = 2; std::find(ids.begin(), ids.end(), id) != ids.end(); ++number) {
      id = fmt::format("{}-n{}", plain, number);  // charts of a plot have its id with "-2"
    }
    ids.push_back(std::move(id));
  }
  return ids;
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string sentence(std::string text) {
  text = capital(std::move(text));
  const bool open =
      !text.empty() && text.back() != '.' && text.back() != '!' && text.back() != '?' && text.back() != ':';
  return open ? text + "." : text;
}

std::string counted(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace lockstep::report
