#include "launch/tar_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

constexpr size_t kLongestPath = 1024;
constexpr size_t kLongestPart = 255;
constexpr size_t kDeepest = 16;
constexpr uint64_t kMostAttributes = 64UL * 1024;
constexpr uint64_t kMostAfterEnd = 1UL << 20;

struct Field {
  size_t at;
  size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kModified{136, 12};
constexpr Field kChecksum{148, 8};
constexpr size_t kType = 156;
constexpr Field kMagic{257, 5};
constexpr size_t kVersion = 263;  ///< "00" in ustar; GNU has no prefix
constexpr Field kPrefix{345, 155};

[[noreturn]] void refuse(const std::string& why) { throw DataError("its archive " + why); }

std::string in_quotes(std::string_view path) {
  constexpr size_t kMost = 100;
  return "'" + process::printable(path.substr(0, kMost)) + (path.size() > kMost ? "...'" : "'");
}

/// Returns the text of a field, which ends at a zero byte or with the field.
std::string_view text_in(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.size);
  return text.substr(0, text.find('\0'));
}

/// Reads octal digits, or GNU's big-endian bytes after 0x80.
uint64_t number_in(std::string_view block, Field field) {
  std::string_view text = block.substr(field.at, field.size);
  uint64_t value = 0;
  if (static_cast<unsigned char>(text[0]) == 0x80) {
    for (const char c : text.substr(1)) {
      if (value > std::numeric_limits<uint64_t>::max() >> 8) refuse("has a number that is too large");
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_first_of(std::string_view(" \0", 2)));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size()) refuse("is damaged: a header has no number");
  return value;
}

void check_sum(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  if (number_in(block, kChecksum) != sum) refuse("is damaged: the checksum of a header is wrong");
}

const char* kind_of(char type) {
  switch (type) {
    case '1':
    case '2':
    case 'K':
      return "a link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "of an unknown kind";
  }
}

}  // namespace

std::string safe_path(std::string_view path) {
  const auto reject = [&](const char* why) { refuse(fmt::format("has {}, {}", in_quotes(path), why)); };
  if (path.starts_with('/')) reject("an absolute path");
  if (path.size() > kLongestPath) reject("a path that is too long");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\'; };
  if (std::any_of(path.begin(), path.end(), is_control)) reject("a path with control characters or backslashes");
  std::string safe;
  size_t depth = 0;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") reject("a path that leaves its folder");
    if (part.size() > kLongestPart) reject("a name that is too long");
    if (++depth > kDeepest) reject("folders that are nested too deep");
    safe.append(safe.empty() ? "" : "/").append(part);
  }
  return safe;
}

void TarReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t taken = 0;
    if (left_ > 0 || padding_ > 0) {
      taken = take_data(bytes);
    } else {
      taken = std::min(bytes.size(), kBlock - filled_);
      std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += taken;
      if (filled_ == kBlock) take_header();
    }
    bytes.remove_prefix(taken);
  }
}

void TarReader::finish() const {
  if (state_ != State::end) refuse("is cut off");
}

void TarReader::take_header() {
  filled_ = 0;
  const std::string_view block(block_.data(), block_.size());
  const bool zero = std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
  if (state_ == State::end) {
    after_end_ += kBlock;
    if (!zero || after_end_ > kMostAfterEnd) refuse("goes on after its end");
    return;
  }
  if (zero) {
    if (++zero_blocks_ == 2) state_ = State::end;
    return;
  }
  if (zero_blocks_ > 0) refuse("is damaged: a block of zeros is in its middle");
  check_sum(block);
  if (++entries_ > limits_.entries) refuse(fmt::format("has more than {} entries", limits_.entries));
  const char type = block[kType];
  const bool about_next = type == 'L' || type == 'x' || type == 'g';
  const uint64_t size = !about_next && next_.has_size ? next_.size : number_in(block, kSize);
  if (about_next) {
    if (size > kMostAttributes) refuse("has a name or attributes that are too long");
    gathered_.clear();
    left_ = size;
    padding_ = (kBlock - size % kBlock) % kBlock;
    state_ = type == 'L' ? State::name : State::attributes;
    if (left_ == 0) end_data();
    return;
  }
  const std::string path = next_.path.empty() ? header_path() : next_.path;
  next_ = {};
  // An impossible time is no reason to lose a file.
  const bool plausible = (static_cast<unsigned char>(block[kModified.at]) & 0x80) == 0;
  take_entry(type, path, size, plausible ? static_cast<int64_t>(number_in(block, kModified)) : 0);
}

std::string TarReader::header_path() const {
  const std::string_view block(block_.data(), block_.size());
  const std::string name(text_in(block, kName));
  const bool ustar = block.substr(kMagic.at, kMagic.size) == "ustar" && block[kVersion] == '0';
  const std::string prefix(ustar ? text_in(block, kPrefix) : "");
  return prefix.empty() ? name : prefix + "/" + name;
}

void TarReader::take_entry(char type, const std::string& path, uint64_t size, int64_t modified) {
  const std::string safe = safe_path(path);
  const bool is_file = type == '0' || type == 0;
  if (!is_file && type != '5') refuse(fmt::format("has {}, {}", in_quotes(path), kind_of(type)));
  if (!is_file || path.ends_with('/')) {
    if (size > 0) refuse(fmt::format("has {}, a folder with content", in_quotes(path)));
    if (!safe.empty()) sink_.folder(safe);
    return;
  }
  if (safe.empty()) refuse("has a file without a name");
  if (size > limits_.bytes - bytes_) {
    refuse(fmt::format("is too large: with {} it has more than {} bytes", in_quotes(path), limits_.bytes));
  }
  bytes_ += size;
  sink_.begin_file(safe, modified);
  left_ = size;
  padding_ = (kBlock - size % kBlock) % kBlock;
  state_ = State::file;
  if (left_ == 0) end_data();
}

size_t TarReader::take_data(std::string_view bytes) {
  if (left_ == 0) {
    const auto taken = std::min<uint64_t>(bytes.size(), padding_);
    padding_ -= taken;
    return taken;
  }
  const auto taken = std::min<uint64_t>(bytes.size(), left_);
  if (state_ == State::file) {
    sink_.data(bytes.substr(0, taken));
  } else {
    gathered_.append(bytes.substr(0, taken));
  }
  left_ -= taken;
  if (left_ == 0) end_data();
  return taken;
}

void TarReader::end_data() {
  if (state_ == State::file) sink_.end_file();
  if (state_ == State::name) next_.path = gathered_.substr(0, gathered_.find('\0'));
  if (state_ == State::attributes) read_attributes();
  state_ = State::header;
}

/// Reads lines "LENGTH KEY=VALUE
/// ", where LENGTH counts the whole line.
void TarReader::read_attributes() {
  for (std::string_view rest = gathered_; !rest.empty();) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 2 || rest[digits] != ' ' ||
        rest[length - 1] != '\n') {
      refuse("is damaged: the attributes of an entry");
    }
    const std::string_view line = rest.substr(digits + 1, length - digits - 2);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) refuse("is damaged: the attributes of an entry");
    set_attribute(line.substr(0, equals), line.substr(equals + 1));
    rest.remove_prefix(length);
  }
}

/// Ignores owners, times and other attributes.
void TarReader::set_attribute(std::string_view key, std::string_view value) {
  if (key.starts_with("GNU.sparse")) refuse("has a sparse file");
  if (key == "linkpath") refuse(fmt::format("has a link to {}", in_quotes(value)));
  if (key == "path") next_.path = value;
  if (key != "size") return;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), next_.size);
  if (error != std::errc() || end != value.data() + value.size()) refuse("is damaged: the attributes of an entry");
  next_.has_size = true;
}

}  // namespace lockstep::launch
