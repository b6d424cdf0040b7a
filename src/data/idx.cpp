#include "data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "data/unpack.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int kIdxDimensions = 4;
constexpr uint32_t kIdxSide = 4096;
constexpr uint64_t kReserveAtMost = uint64_t{256} << 20;
constexpr size_t kReadAtOnce = size_t{256} << 10;

const char* type_name(uint8_t code) {
  switch (code) {
    case 0x09:
      return "signed byte";
    case 0x0b:
      return "int16";
    case 0x0c:
      return "int32";
    case 0x0d:
      return "float32";
    case 0x0e:
      return "float64";
    default:
      return "unknown";
  }
}

int read_magic(Unpacker& file) {
  std::array<uint8_t, 4> magic{};
  if (const size_t got = file.read(magic); got < magic.size()) {
    throw DataError(fmt::format("{}: not an idx file: it has {} bytes, a header has at least 8", file.name(), got));
  }
  if (magic[0] != 0 || magic[1] != 0) {
    throw DataError(
        fmt::format("{}: not an idx file: it starts with {:02x}{:02x}{:02x}{:02x}, an idx file of bytes with "
                    "0000080N (N dimensions)",
                    file.name(), magic[0], magic[1], magic[2], magic[3]));
  }
  if (magic[2] != kUnsignedByte) {
    throw DataError(fmt::format("{}: element type 0x{:02x} ({}); only 0x08 (unsigned byte) is allowed", file.name(),
                                magic[2], type_name(magic[2])));
  }
  if (magic[3] < 1 || magic[3] > kIdxDimensions) {
    throw DataError(fmt::format("{}: {} dimensions; 1 to {} are allowed", file.name(), int{magic[3]}, kIdxDimensions));
  }
  return magic[3];
}

std::vector<uint32_t> read_dims(Unpacker& file, int count) {
  std::vector<uint32_t> dims;
  for (int i = 0; i < count; ++i) {
    std::array<uint8_t, 4> b{};
    if (file.read(b) < b.size()) throw DataError(file.name() + ": cut off within its header");
    dims.push_back(uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]});
  }
  return dims;
}

/// Returns the product of the dimensions. Throws DataError if the file cannot hold that many bytes.
uint64_t checked_size(const Unpacker& file, const std::vector<uint32_t>& dims) {
  uint64_t size = 1;
  bool absurd = false;
  for (const uint32_t dim : dims) {
    absurd = absurd || (dim != 0 && size > std::numeric_limits<uint64_t>::max() / dim);
    size *= dim;
  }
  if (absurd || size > file.max_size()) {
    throw DataError(fmt::format("{}: cut off or damaged: its header declares {} bytes of data, the file has {} bytes{}",
                                file.name(), fmt::join(dims, " x "), file.file_size(),
                                file.is_gzip() ? " of gzip data" : ""));
  }
  return size;
}

/// Requests large pages if the system has them: examples are read in random order, which is a quarter faster with them.
void prefer_large_pages(std::vector<uint8_t>& data) {
  constexpr size_t kPage = size_t{2} << 20;
  void* begin = data.data();
  size_t space = data.capacity();
  if (std::align(kPage, kPage, begin, space) != nullptr) ::madvise(begin, space / kPage * kPage, MADV_HUGEPAGE);
}

std::vector<uint8_t> read_content(Unpacker& file, uint64_t size) {
  std::vector<uint8_t> data;
  data.reserve(std::min({size, file.max_size(), kReserveAtMost}));
  prefer_large_pages(data);
  while (data.size() < size) {
    const size_t begin = data.size();
    data.resize(begin + std::min<uint64_t>(kReadAtOnce, size - begin));
    const size_t got = file.read(std::span(data).subspan(begin));
    if (begin + got < data.size()) {
      throw DataError(
          fmt::format("{}: cut off: {} bytes of data, its header declares {}", file.name(), begin + got, size));
    }
  }
  std::array<uint8_t, 1> extra{};
  if (file.read(extra) != 0) {
    throw DataError(fmt::format("{}: data follows after the {} bytes that its header declares", file.name(), size));
  }
  return data;
}

IdxArray read(Unpacker& file) {
  IdxArray array;
  array.dims = read_dims(file, read_magic(file));
  array.data = read_content(file, checked_size(file, array.dims));
  return array;
}

void check_dimensions(const IdxArray& array, size_t wanted, const char* what, const std::string& path) {
  if (array.dims.size() != wanted) {
    throw DataError(fmt::format("{}: {} dimensions ({}); {} have {}", path, array.dims.size(),
                                fmt::join(array.dims, " x "), what, wanted));
  }
  if (array.dims[0] == 0) throw DataError(fmt::format("{}: no {}: the data set is empty", path, what));
}

}  // namespace

IdxArray read_idx(const std::string& path) {
  Unpacker file(path);
  return read(file);
}

IdxArray parse_idx(std::span<const uint8_t> file, const std::string& name) {
  Unpacker unpacker(file, name);
  return read(unpacker);
}

Examples read_idx_images(const std::string& path) {
  IdxArray array = read_idx(path);
  check_dimensions(array, 3, "images", path);
  const uint32_t height = array.dims[1];
  const uint32_t width = array.dims[2];
  if (height < 1 || height > kIdxSide || width < 1 || width > kIdxSide) {
    throw DataError(
        fmt::format("{}: images of {} x {} pixels; 1 to {} a side are allowed", path, height, width, kIdxSide));
  }
  Examples examples;
  examples.shape = {1, static_cast<int>(height), static_cast<int>(width)};
  examples.bytes = std::move(array.data);
  return examples;
}

Examples read_idx_pair(const std::string& images_path, const std::string& labels_path, int classes) {
  const IdxArray labels = read_idx(labels_path);
  check_dimensions(labels, 1, "labels", labels_path);
  Examples examples = read_idx_images(images_path);
  if (examples.count() != static_cast<int64_t>(labels.data.size())) {
    throw DataError(fmt::format("{} has {} images but {} has {} labels", images_path, examples.count(), labels_path,
                                labels.data.size()));
  }
  examples.classes = classes;
  examples.labels.assign(labels.data.begin(), labels.data.end());
  check_labels(examples, labels_path);
  return examples;
}

}  // namespace lockstep::data
