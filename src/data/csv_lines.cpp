#include "data/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;
constexpr size_t kMaxLine = size_t{64} << 20;
constexpr size_t kMaxFields = size_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16[] = {"\xFF\xFE", "\xFE\xFF"};
constexpr const char* kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

bool CsvLines::next() {
  while (read_line()) {
    if (++number_ == 1) check_start();
    if (trimmed(line_).empty()) continue;
    cut();
    return true;
  }
  return false;
}

/// Checks the first line for text that is not UTF-8, and leaves out a byte-order mark.
void CsvLines::check_start() {
  if (line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
  const bool marked = line_.starts_with(kUtf16[0]) || line_.starts_with(kUtf16[1]);
  if (!marked && line_.find('\0') == std::string::npos) return;
  throw DataError(fmt::format("{}: {}; CSV in UTF-8 is allowed: `iconv -f UTF-16 -t UTF-8` converts", content_.name(),
                              marked ? "text in UTF-16" : "its first line has zero bytes, as text in UTF-16 has"));
}

bool CsvLines::refill() {
  buffer_.resize(kBuffer);
  begin_ = 0;
  end_ = content_.read(buffer_);
  return end_ > 0;
}

/// Reads up to a line feed, a carriage return, or both.
bool CsvLines::read_line() {
  line_.clear();
  while (begin_ < end_ || refill()) {
    if (std::exchange(after_return_, false) && buffer_[begin_] == '\n') {
      ++begin_;
      continue;
    }
    const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto stop = std::find(first, std::find(first, last, '\n'), '\r');
    line_.append(first, stop);
    begin_ = static_cast<size_t>(stop - buffer_.begin());
    if (line_.size() > kMaxLine) {
      throw DataError(fmt::format("{}:{}: a line has more than {} MB; is this a CSV file?", content_.name(),
                                  number_ + 1, kMaxLine >> 20));
    }
    if (stop == last) continue;
    after_return_ = *stop == '\r';
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
