#include "data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/csv_lines.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kBlock = size_t{1} << 20;  ///< floats allocated together
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
constexpr size_t kMostTextClasses = 10000;
constexpr size_t kMostNumberClasses = 100;  ///< numbers such as 0.5 as names of classes; more are a quantity
constexpr double kMostClasses = 1e6;

using Fields = std::vector<std::string>;

std::string shown(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string result(text.substr(0, kShown));
  for (char& c : result) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return text.size() > kShown ? result + "..." : result;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

constexpr std::array<std::string_view, 3> kLabelNames{"label", "class", "y"};

bool is_label_name(const std::string& name) {
  return std::find(kLabelNames.begin(), kLabelNames.end(), lower(name)) != kLabelNames.end();
}

/// Returns true for what programs write in place of a missing number.
bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 9> kMissing{"na", "n/a", "nan", "null", "none", "nil", "?", "-", "."};
  return std::find(kMissing.begin(), kMissing.end(), lower(text)) != kMissing.end();
}

std::optional<double> to_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(text).c_str(), nullptr);  // 0 for 1e-400
  if (error != std::errc{}) return std::nullopt;
  return value;
}

/// Parses a whole number from 0, also in pandas' form ("3.0").
std::optional<int32_t> to_label(std::string_view text) {
  const auto value = to_number(text);
  if (!value || *value < 0 || *value >= kMostClasses || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int32_t>(*value);
}

/// Floats in blocks, which grow without copying.
class Blocks {
 public:
  void add(float value) {
    if (blocks_.empty() || blocks_.back().size() == kBlock) {
      blocks_.emplace_back();
      blocks_.back().reserve(blocks_.size() == 1 ? 0 : kBlock);
    }
    blocks_.back().push_back(value);
    ++size_;
  }

  /// Returns all floats in one piece; frees each block after copying it.
  std::vector<float> take() {
    std::vector<float> all;
    all.reserve(size_);
    for (std::vector<float>& block : blocks_) {
      all.insert(all.end(), block.begin(), block.end());
      std::vector<float>().swap(block);
    }
    return all;
  }

 private:
  std::vector<std::vector<float>> blocks_;
  size_t size_ = 0;
};

/// The distinct labels seen.
class Labels {
 public:
  void add(const std::string_view text, int64_t line) {
    if (text != last_ || rows_.empty()) {
      last_ = text;
      const auto [found, fresh] = numbers_.try_emplace(last_, static_cast<int32_t>(numbers_.size()));
      last_number_ = found->second;
      whole_ = whole_ && (!fresh || to_label(text).has_value());
      if (fresh) {
        const bool number = to_number(text).has_value() && !is_missing(text);
        some_number_ = some_number_ || number;
        numbers_only_ = numbers_only_ && (number || is_missing(text));
      }
      if (fresh && is_missing(text) && missing_.empty()) {
        missing_ = text;
        missing_line_ = line;
      }
    }
    rows_.push_back(last_number_);
  }

  [[nodiscard]] bool too_many() const { return !whole_ && numbers_.size() > kMostTextClasses; }

  /// Returns true if the labels are measured values rather than classes.
  [[nodiscard]] bool quantity() const { return !whole_ && numbers_only_ && numbers_.size() > kMostNumberClasses; }

  /// Returns the line of a missing label among numbers; 0 if there is none.
  [[nodiscard]] int64_t missing_line() const { return numbers_only_ && some_number_ ? missing_line_ : 0; }
  [[nodiscard]] const std::string& missing() const { return missing_; }

  void finish(CsvTable& table) {
    std::vector<int32_t> meaning(numbers_.size());
    if (whole_) {
      for (const auto& [text, number] : numbers_) meaning[static_cast<size_t>(number)] = *to_label(text);
    } else {
      for (const auto& [text, number] : numbers_) table.class_names.push_back(text);
      std::sort(table.class_names.begin(), table.class_names.end());
      for (size_t i = 0; i < table.class_names.size(); ++i) {
        meaning[static_cast<size_t>(numbers_[table.class_names[i]])] = static_cast<int32_t>(i);
      }
    }
    for (int32_t& row : rows_) row = meaning[static_cast<size_t>(row)];
    table.labels = std::move(rows_);
  }

 private:
  std::unordered_map<std::string, int32_t> numbers_;  ///< in order of first appearance
  std::vector<int32_t> rows_;
  bool whole_ = true;
  bool some_number_ = false;
  bool numbers_only_ = true;  ///< apart from missing ones
  std::string missing_;       ///< the first one, such as "NA"; empty: none
  int64_t missing_line_ = 0;
  std::string last_;
  int32_t last_number_ = 0;
};

class Reader {
 public:
  Reader(Unpacker& content, const std::string& label_column, int64_t features)
      : lines_(content), name_(content.name()), wanted_(label_column), features_(static_cast<size_t>(features)) {}

  CsvTable read() {
    if (!lines_.next()) throw DataError(name_ + ": no examples: the file is empty");
    first_.assign(lines_.fields().begin(), lines_.fields().end());
    line_ = first_line_ = lines_.number();
    const bool more = lines_.next();
    const bool header = is_header(more ? &lines_.fields() : nullptr);
    if (header) names_ = first_;
    choose_label_column();
    if (first_.size() == (labelled() ? 1U : 0U)) {
      throw DataError(
          fmt::format("{}: one column, which holds the labels; values must be separated by commas", place()));
    }
    if (!header) add({first_.begin(), first_.end()});
    for (bool any = more; any; any = lines_.next()) {
      line_ = lines_.number();
      add(lines_.fields());
    }
    if (rows_ == 0) throw DataError(name_ + ": no examples after the line of names");
    return finish();
  }

 private:
  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", name_, line_); }
  [[nodiscard]] bool labelled() const { return label_ < first_.size(); }

  /// Returns true if the first line names the columns: it has the label's name, or text above a number of the second
  /// line. Without a second line all of it is text.
  [[nodiscard]] bool is_header(const std::vector<std::string_view>* second) const {
    const auto named = [&](const std::string& field) {
      return is_label_name(field) || (!wanted_.empty() && !to_number(wanted_) && lower(field) == lower(wanted_));
    };
    if (std::any_of(first_.begin(), first_.end(), named)) return true;
    if (second == nullptr) return std::none_of(first_.begin(), first_.end(), to_number);
    for (size_t i = 0; i < first_.size(); ++i) {
      const bool number_below = i < second->size() && to_number((*second)[i]);
      if (number_below && !first_[i].empty() && !to_number(first_[i])) return true;
    }
    return false;
  }

  void choose_label_column() {
    label_ = first_.size();
    if (wanted_.empty()) {
      for (const std::string_view name : kLabelNames) {
        if (find_column(name)) return;
      }
    } else if (find_column(lower(wanted_))) {
      return;
    }
    if (wanted_ == "none" || first_.size() == features_) return;
    size_t number = first_.size();
    if (!wanted_.empty()) {
      const auto [end, error] = std::from_chars(wanted_.data(), wanted_.data() + wanted_.size(), number);
      const bool whole = error == std::errc{} && end == wanted_.data() + wanted_.size();
      if (!whole || number < 1 || number > first_.size()) {
        throw UsageError(fmt::format(
            "label-column '{}': {} has {} columns{}; a number from 1 to {} or none is allowed", wanted_, place(),
            first_.size(), names_.empty() ? std::string(" without names") : " and none of that name", first_.size()));
      }
    }
    label_ = number - 1;
  }

  /// Takes the column of that name in lower case as the label column, if there is one.
  bool find_column(std::string_view name) {
    const auto is = [&](const std::string& other) { return lower(other) == name; };
    const auto found = std::find_if(names_.begin(), names_.end(), is);
    if (found == names_.end()) return false;
    const auto next = std::find_if(found + 1, names_.end(), is);
    if (next != names_.end()) {
      throw DataError(fmt::format("{}: columns {} and {} are both called '{}'; label-column chooses one by its number",
                                  place(), found - names_.begin() + 1, next - names_.begin() + 1, shown(*next)));
    }
    label_ = static_cast<size_t>(found - names_.begin());
    return true;
  }

  [[nodiscard]] std::string column(size_t index) const {
    return index < names_.size() ? fmt::format("column '{}'", shown(names_[index]))
                                 : fmt::format("column {}", index + 1);
  }

  void add(const std::vector<std::string_view>& fields) {
    if (fields.size() != first_.size()) {
      throw DataError(fmt::format("{}: {} values; {} are expected, as in line {}", place(), fields.size(),
                                  first_.size(), first_line_));
    }
    if (++rows_ > kMostRows) throw DataError(fmt::format("{}: more than {} examples", place(), kMostRows));
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i == label_) {
        add_label(fields[i]);
      } else {
        values_.add(number(fields[i], i));
      }
    }
  }

  void add_label(std::string_view field) {
    if (field.empty()) throw DataError(fmt::format("{}: {}: no label", place(), column(label_)));
    labels_.add(field, line_);
    if (labels_.quantity()) {
      throw DataError(
          fmt::format("{}: {}: its labels are more than {} different numbers that are not whole, here '{}'; a model "
                      "learns classes: "
                      "whole numbers from 0, or texts (label-column says which column it is)",
                      place(), column(label_), kMostNumberClasses, shown(field)));
    }
    if (!labels_.too_many()) return;
    throw DataError(
        fmt::format("{}: {}: '{}' is one distinct label too many; whole numbers from 0, or up to {} different texts "
                    "are allowed (label-column says which column it is)",
                    place(), column(label_), shown(field), kMostTextClasses));
  }

  [[nodiscard]] float number(std::string_view field, size_t index) const {
    const auto value = to_number(field);
    if (value && std::abs(*value) <= double{std::numeric_limits<float>::max()}) return static_cast<float>(*value);
    const bool large = value && !std::isnan(*value) && lower(field).find("inf") == std::string::npos;
    throw DataError(fmt::format("{}: {}: '{}' is {}; finite numbers {}are allowed", place(), column(index),
                                shown(field), large ? "too large" : "not a number", large ? "up to 3.4e38 " : ""));
  }

  CsvTable finish() {
    CsvTable table;
    table.columns = static_cast<int64_t>(first_.size()) - (labelled() ? 1 : 0);
    table.values = values_.take();
    if (labelled()) {
      table.label_column = column(label_);
      if (labels_.missing_line() > 0) {
        throw DataError(
            fmt::format("{}:{}: {}: '{}' is no label, as the others are numbers; leave out examples without "
                        "a label, or number all of them from 0",
                        name_, labels_.missing_line(), table.label_column, labels_.missing()));
      }
      labels_.finish(table);
    }
    return table;
  }

  CsvLines lines_;
  const std::string name_;
  const std::string wanted_;
  const size_t features_;  ///< a file with so many columns has no labels, unless by name; 0: any may
  Fields first_;           ///< the first line, names or values
  int64_t first_line_ = 0;
  int64_t line_ = 0;
  Fields names_;      ///< empty: the file has no names
  size_t label_ = 0;  ///< number of columns if there are no labels
  int64_t rows_ = 0;
  Blocks values_;
  Labels labels_;
};

}  // namespace

CsvTable read_csv(const std::string& path, const std::string& label_column, int64_t features) {
  Unpacker content(path);
  return Reader(content, label_column, features).read();
}

CsvTable parse_csv(std::span<const uint8_t> file, const std::string& name, const std::string& label_column,
                   int64_t features) {
  Unpacker content(file, name);
  return Reader(content, label_column, features).read();
}

}  // namespace lockstep::data
