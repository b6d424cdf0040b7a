#include "data/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;
constexpr size_t kMaxLine = size_t{64} << 20;
constexpr size_t kMaxFields = size_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr const char* kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

bool CsvLines::next() {
  while (read_line()) {
    ++number_;
    if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
    if (line_.ends_with('\r')) line_.pop_back();
    if (trimmed(line_).empty()) continue;
    cut();
    return true;
  }
  return false;
}

bool CsvLines::refill() {
  buffer_.resize(kBuffer);
  begin_ = 0;
  end_ = content_.read(buffer_);
  return end_ > 0;
}

bool CsvLines::read_line() {
  line_.clear();
  while (begin_ < end_ || refill()) {
    const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto stop = std::find(first, last, '\n');
    line_.append(first, stop);
    begin_ = static_cast<size_t>(stop - buffer_.begin());
    if (line_.size() > kMaxLine) {
      throw DataError(fmt::format("{}:{}: a line has more than {} MB; is this a CSV file?", content_.name(),
                                  number_ + 1, kMaxLine >> 20));
    }
    if (stop == last) continue;
    ++begin_;
    return true;
  }
  return !line_.empty();
}

void CsvLines::cut() {
  fields_.clear();
  for (size_t begin = 0; begin <= line_.size();) {
    const size_t start = std::min(line_.find_first_not_of(kBlank, begin), line_.size());
    if (start < line_.size() && line_[start] == '"') {
      begin = cut_quoted(start);
    } else {
      const size_t end = std::min(line_.find(',', begin), line_.size());
      fields_.push_back(trimmed(std::string_view(line_).substr(begin, end - begin)));
      begin = end + 1;
    }
    if (fields_.size() > kMaxFields) {
      throw DataError(fmt::format("{}: more than {} values in a line", place(), kMaxFields));
    }
  }
}

/// Cuts the field with the opening quote at `begin`, unquoting it within the line; returns the start of the next field.
size_t CsvLines::cut_quoted(size_t begin) {
  size_t to = begin + 1;
  size_t at = begin + 1;
  for (; at < line_.size(); ++at) {
    if (line_[at] == '"') {
      if (at + 1 == line_.size() || line_[at + 1] != '"') break;
      ++at;
    }
    line_[to++] = line_[at];
  }
  const size_t column = fields_.size() + 1;
  if (at >= line_.size()) {
    throw DataError(
        fmt::format("{}: column {}: a quote without an end; a quoted value must end on its line", place(), column));
  }
  fields_.push_back(std::string_view(line_).substr(begin + 1, to - begin - 1));
  const size_t next = std::min(line_.find_first_not_of(kBlank, at + 1), line_.size());
  if (next < line_.size() && line_[next] != ',') {
    throw DataError(
        fmt::format("{}: column {}: '{}' follows a closing quote; a comma is allowed", place(), column, line_[next]));
  }
  return next + 1;
}

}  // namespace lockstep::data
