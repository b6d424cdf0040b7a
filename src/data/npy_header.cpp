#include "data/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, 6> kMagic{0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr size_t kNpyDimensions = 8;
constexpr const char* kSpaces = " \t\n";

/// A cursor over the text of the dict.
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  [[noreturn]] void fail(const std::string& reason) const {
    throw DataError(fmt::format("{}: bad npy header: {}", name_, reason));
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  bool accept(std::string_view token) {
    skip_blank();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}' expected", token));
  }

  std::string quoted() {
    skip_blank();
    if (text_.starts_with("[")) fail("structured elements; only plain numbers are allowed");
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') fail("a string is expected");
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  int64_t number() {
    skip_blank();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) fail("a dimension is not a valid number");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

 private:
  void skip_blank() { text_.remove_prefix(std::min(text_.find_first_not_of(kSpaces), text_.size())); }

  std::string_view text_;
  const std::string& name_;
};

struct NamedType {
  std::string_view name;  ///< without the order of bytes
  NpyType type;
  size_t size;
};
constexpr std::array kTypes{
    NamedType{"b1", NpyType::kBool, 1}, NamedType{"u1", NpyType::kU1, 1}, NamedType{"i1", NpyType::kI1, 1},
    NamedType{"u2", NpyType::kU2, 2},   NamedType{"i2", NpyType::kI2, 2}, NamedType{"u4", NpyType::kU4, 4},
    NamedType{"i4", NpyType::kI4, 4},   NamedType{"u8", NpyType::kU8, 8}, NamedType{"i8", NpyType::kI8, 8},
    NamedType{"f4", NpyType::kF4, 4},   NamedType{"f8", NpyType::kF8, 8},
};

/// Says how to save an array of another type.
std::string advice(char kind) {
  switch (kind) {
    case 'U':
    case 'S':
      return "texts; number them: numpy.unique(a, return_inverse=True)[1] are labels, and its [0] their names";
    case 'O':
      return "Python objects; save plain numbers";
    default:
      return "booleans, integers, f4 and f8 are allowed: save a.astype(numpy.float32)";
  }
}

void parse_type(const DictReader& reader, const std::string& descr, NpyHeader& header) {
  const bool ordered = !descr.empty() && (descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=');
  const std::string_view plain = std::string_view(descr).substr(ordered ? 1 : 0);
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& entry) { return entry.name == plain; });
  if (found == kTypes.end()) {
    throw DataError(
        fmt::format("{}: elements of type '{}': {}", reader.name(), descr, advice(plain.empty() ? '\0' : plain[0])));
  }
  header.type = found->type;
  header.big_endian = descr[0] == '>' && found->size > 1;
}

std::vector<int64_t> parse_shape(DictReader& reader) {
  std::vector<int64_t> shape;
  reader.expect("(");
  while (!reader.accept(")")) {
    shape.push_back(reader.number());
    if (shape.size() > kNpyDimensions) reader.fail(fmt::format("more than {} dimensions", kNpyDimensions));
    if (!reader.accept(",")) {
      reader.expect(")");
      break;
    }
  }
  return shape;
}

void parse_dict(DictReader& reader, NpyHeader& header) {
  bool typed = false;
  bool shaped = false;
  reader.expect("{");
  while (!reader.accept("}")) {
    const std::string key = reader.quoted();
    reader.expect(":");
    if (key == "descr") {
      parse_type(reader, reader.quoted(), header);
      typed = true;
    } else if (key == "fortran_order") {
      if (reader.accept("True")) reader.fail("Fortran order; only C order is allowed: save numpy.ascontiguousarray(a)");
      reader.expect("False");
    } else if (key == "shape") {
      header.shape = parse_shape(reader);
      shaped = true;
    } else {
      reader.fail(fmt::format("key '{}'; descr, fortran_order and shape are allowed", key));
    }
    if (!reader.accept(",")) {
      reader.expect("}");
      break;
    }
  }
  if (!typed || !shaped) reader.fail("descr or shape is missing");
}

/// Returns the text of the dict; sets `size` to the bytes of the header.
std::string_view header_text(std::span<const uint8_t> file, const std::string& name, size_t& size) {
  if (file.size() < 10 || !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    throw DataError(name + ": not a npy array: it does not start with \\x93NUMPY");
  }
  const int version = file[6];
  if (version < 1 || version > 2) {
    throw DataError(fmt::format("{}: npy format {}.{}; 1 and 2 are allowed", name, version, int{file[7]}));
  }
  const size_t begin = version == 1 ? 10 : 12;
  size_t length = file[8] | size_t{file[9]} << 8;
  if (version == 2 && file.size() >= begin) length |= size_t{file[10]} << 16 | size_t{file[11]} << 24;
  if (file.size() < begin || file.size() - begin < length) throw DataError(name + ": cut off within its npy header");
  size = begin + length;
  return {reinterpret_cast<const char*>(file.data()) + begin, length};
}

}  // namespace

size_t item_size(NpyType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& entry) { return entry.type == type; })->size;
}

NpyHeader read_npy_header(std::span<const uint8_t> file, const std::string& name) {
  NpyHeader header;
  DictReader reader(header_text(file, name, header.size), name);
  parse_dict(reader, header);
  return header;
}

}  // namespace lockstep::data
