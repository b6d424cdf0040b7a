#include "data/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "base/file.h"
#include "data/idx.h"
#include "data/npz.h"
#include "data/own_data.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kMaxNpy = uint64_t{4} << 30;

std::string first_bytes(const std::string& path) {
  uint64_t size = 0;
  const base::FileHandle file = base::open_for_reading(path, size);
  std::array<uint8_t, 8> head{};
  const size_t got = base::read_some(file, head, path);
  return {head.begin(), head.begin() + static_cast<std::ptrdiff_t>(got)};
}

/// Chooses the arrays to read if the caller named none.
void choose_arrays(const Npz& npz, ReadImagesOptions& options, const std::string& path) {
  if (!options.array.empty()) return;
  const ArrayNames found = arrays_to_predict(npz);
  options.array = found.images;
  options.label_array = found.labels;
  if (!found.images.empty()) return;
  throw DataError(fmt::format("{}: which array holds the images? It has {}", path, fmt::join(npz.names(), ", ")));
}

Examples read_npz_images(const std::string& path, ReadImagesOptions options) {
  const Npz npz = Npz::open(path);
  choose_arrays(npz, options, path);
  Examples examples = images_from_array(npz.read(options.array), options.expected, path + ":" + options.array);
  if (options.label_array.empty()) return examples;
  examples.labels = labels_from_array(npz.read(options.label_array), path + ":" + options.label_array);
  if (examples.count() != static_cast<int64_t>(examples.labels.size())) {
    throw DataError(fmt::format("{}: {} images in {} but {} labels in {}", path, examples.count(), options.array,
                                examples.labels.size(), options.label_array));
  }
  return examples;
}

Examples read_any(const std::string& path, const ReadImagesOptions& options) {
  const std::string head = first_bytes(path);
  if (head.starts_with("\x89PNG"sv)) return read_png(path, options.expected.channels == 3 ? 3 : 1);
  if (head.starts_with("PK"sv)) return read_npz_images(path, options);
  if (head.starts_with("\x93NUMPY"sv)) {
    return images_from_array(parse_npy(base::read_file(path, kMaxNpy), path), options.expected, path);
  }
  if (head.starts_with("\x1f\x8b"sv) || head.starts_with("\0\0"sv)) return read_idx_images(path);
  throw DataError(path + ": unknown image format; idx (plain or gzip), npz, npy and PNG are allowed");
}

}  // namespace

Examples read_images(const std::string& path, const ReadImagesOptions& options) {
  Examples examples = read_any(path, options);
  if (options.expected.size() > 0 && examples.shape != options.expected) {
    throw DataError(fmt::format("{}: images of {} (channels x height x width); {} is expected", path,
                                to_string(examples.shape), to_string(options.expected)));
  }
  return examples;
}

}  // namespace lockstep::data
