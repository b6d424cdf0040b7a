#include "data/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/file.h"
#include "data/npy_header.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMaxFile = uint64_t{4} << 30;
constexpr std::string_view kSuffix = ".npy";

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ",")); }

/// Turns the bytes of a .npy file, header and all, into the array.
NpyArray take_npy(std::vector<uint8_t> file, const std::string& name) {
  NpyHeader header = read_npy_header(file, name);
  const uint64_t available = (file.size() - header.size) / item_size(header.type);
  uint64_t size = 1;
  bool fits = true;
  for (const int64_t dim : header.shape) {
    fits = fits && (dim == 0 || size <= available / static_cast<uint64_t>(dim));
    size *= static_cast<uint64_t>(dim);
  }
  if (!fits || size * item_size(header.type) != file.size() - header.size) {
    throw DataError(fmt::format("{}: shape {} of {}-byte elements, but {} bytes of data", name,
                                shape_text(header.shape), item_size(header.type), file.size() - header.size));
  }
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header.size));
  const auto item = static_cast<std::ptrdiff_t>(item_size(header.type));
  for (auto at = file.begin(); header.big_endian && at != file.end(); at += item) std::reverse(at, at + item);
  return {header.type, std::move(header.shape), std::move(file)};
}

template <class T>
T load(const std::vector<uint8_t>& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

bool is_float(NpyType type) { return type == NpyType::kF4 || type == NpyType::kF8; }

/// Returns the images' shape from the array's. Throws DataError for images without pixels.
ImageShape image_shape(const NpyArray& array, const ImageShape& expected, const std::string& source) {
  const std::vector<int64_t>& dims = array.shape;
  const bool plausible = std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim > 0 && dim <= (1 << 30); });
  if (!plausible) throw DataError(fmt::format("{}: no images in shape {}", source, shape_text(dims)));
  const auto side = [&](size_t i) { return static_cast<int>(dims[i]); };
  if (dims.size() == 4) return {side(1), side(2), side(3)};
  if (dims.size() == 3) return {1, side(1), side(2)};
  if (dims.size() == 2 && expected.size() > 0 && dims[1] == static_cast<int64_t>(expected.size())) return expected;
  if (dims.size() == 2) return {1, side(0), side(1)};
  throw DataError(fmt::format("{}: shape {} is not images; (n,c,h,w), (n,h,w), (h,w){} are allowed", source,
                              shape_text(dims),
                              expected.size() > 0 ? fmt::format(" and (n,{})", expected.size()) : std::string()));
}

uint8_t to_byte(double value, int64_t index, const std::string& source) {
  if (value < 0 || value > 255) {
    throw DataError(fmt::format("{}: pixel {} is {}; integers must be 0 to 255; save other numbers as float32", source,
                                index, value));
  }
  return static_cast<uint8_t>(value);
}

}  // namespace

int64_t NpyArray::size() const { return static_cast<int64_t>(bytes.size() / item_size(type)); }

double NpyArray::at(int64_t index) const {
  switch (type) {
    case NpyType::kBool:
      return load<uint8_t>(bytes, index) != 0 ? 1 : 0;
    case NpyType::kU1:
      return load<uint8_t>(bytes, index);
    case NpyType::kI1:
      return load<int8_t>(bytes, index);
    case NpyType::kU2:
      return load<uint16_t>(bytes, index);
    case NpyType::kI2:
      return load<int16_t>(bytes, index);
    case NpyType::kU4:
      return load<uint32_t>(bytes, index);
    case NpyType::kI4:
      return load<int32_t>(bytes, index);
    case NpyType::kU8:
      return static_cast<double>(load<uint64_t>(bytes, index));
    case NpyType::kI8:
      return static_cast<double>(load<int64_t>(bytes, index));
    case NpyType::kF4:
      return double{load<float>(bytes, index)};
    case NpyType::kF8:
      break;
  }
  return load<double>(bytes, index);
}

NpyArray parse_npy(std::span<const uint8_t> file, const std::string& name) {
  return take_npy({file.begin(), file.end()}, name);
}

Npz Npz::open(const std::string& path) { return parse(base::read_file(path, kMaxFile), path); }

Npz Npz::parse(std::vector<uint8_t> file, std::string name) {
  Npz npz;
  npz.name_ = std::move(name);
  npz.file_ = std::move(file);
  for (ZipEntry& entry : zip_entries(npz.file_, npz.name_)) {
    if (!std::string_view(entry.name).ends_with(kSuffix)) continue;
    npz.names_.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    npz.entries_.push_back(std::move(entry));
  }
  if (npz.entries_.empty()) throw DataError(npz.name_ + ": no arrays in the archive");
  return npz;
}

bool Npz::has(const std::string& array) const { return std::find(names_.begin(), names_.end(), array) != names_.end(); }

NpyArray Npz::read(const std::string& array) const {
  const auto found = std::find(names_.begin(), names_.end(), array);
  if (found == names_.end()) {
    throw DataError(fmt::format("{}: no array '{}'; it has {}", name_, array, fmt::join(names_, ", ")));
  }
  const ZipEntry& entry = entries_[static_cast<size_t>(found - names_.begin())];
  return take_npy(zip_unpack(file_, entry, name_), name_ + ":" + array);
}

Examples images_from_array(const NpyArray& array, const ImageShape& expected, const std::string& source) {
  Examples examples;
  examples.shape = image_shape(array, expected, source);
  const int64_t size = array.size();
  if (is_float(array.type)) {
    examples.floats.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) examples.floats[static_cast<size_t>(i)] = static_cast<float>(array.at(i));
  } else {
    const double unit = array.type == NpyType::kBool ? 255 : 1;
    examples.bytes.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) examples.bytes[static_cast<size_t>(i)] = to_byte(unit * array.at(i), i, source);
  }
  return examples;
}

std::vector<int32_t> labels_from_array(const NpyArray& array, const std::string& source) {
  const bool column = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  if (!column || is_float(array.type)) {
    throw DataError(fmt::format("{}: shape {}{} is not labels; integers of shape (n) or (n,1) are allowed", source,
                                shape_text(array.shape), is_float(array.type) ? " of floats" : ""));
  }
  std::vector<int32_t> labels(static_cast<size_t>(array.size()));
  for (int64_t i = 0; i < array.size(); ++i) {
    const double value = array.at(i);
    if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
      throw DataError(fmt::format("{}: label {} of example {} is out of range", source, value, i));
    }
    labels[static_cast<size_t>(i)] = static_cast<int32_t>(value);
  }
  return labels;
}

}  // namespace lockstep::data
