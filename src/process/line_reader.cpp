#include "process/line_reader.h"

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"

namespace lockstep::process {
namespace {

/// True for U+0080 to U+009F: control characters that some terminals obey.
bool is_high_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<uint8_t>(character[1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const size_t length = base::character_length(text.substr(at));
    if (length == 0) {
      result += base::kReplacement;
    } else if (byte == '\t') {
      result += ' ';
    } else if (byte < 0x20 || byte == 0x7F || is_high_control(text.substr(at, length))) {
      result += '?';
    } else {
      result += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return result;
}

void LineReader::take(std::string_view bytes) {
  if (cut_) return;
  const size_t room = kLongest - partial_.size();
  partial_ += bytes.substr(0, room);
  if (bytes.size() <= room) return;
  partial_ += "...";
  cut_ = true;
}

void LineReader::give(const Sink& sink) {
  if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
  const std::string line = printable(partial_);
  partial_.clear();
  cut_ = false;
  sink(line);
}

void LineReader::feed(std::string_view bytes, const Sink& sink) {
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\n', begin);
    take(bytes.substr(begin, end - begin));
    if (end == std::string_view::npos) return;
    give(sink);
    begin = end + 1;
  }
}

void LineReader::finish(const Sink& sink) {
  if (!partial_.empty()) give(sink);
}

}  // namespace lockstep::process
