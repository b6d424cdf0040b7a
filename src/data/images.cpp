#include "data/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "data/csv.h"
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

/// Numbers a CSV file's labels in words as the model does.
void use_class_numbers(CsvTable& table, const std::vector<std::string>& classes, const std::string& path) {
  if (table.class_names.empty() || classes.empty()) return;
  std::vector<int32_t> numbers;
  for (const std::string& name : table.class_names) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw DataError(fmt::format("{}: {}: the model has no class '{}'; it has {}", path, table.label_column, name,
                                  fmt::join(classes, ", ")));
    }
    numbers.push_back(static_cast<int32_t>(found - classes.begin()));
  }
  for (int32_t& label : table.labels) label = numbers[static_cast<size_t>(label)];
}

Examples read_csv_examples(const std::string& path, const ReadImagesOptions& options) {
  CsvTable table = read_csv(path, options.label_column, static_cast<int64_t>(options.expected.size()));
  const auto wanted = static_cast<int64_t>(options.expected.size());
  if (wanted > 0 && table.columns != wanted) {
    throw DataError(fmt::format("{}: {} value{} per row{}; the model takes {}", path, table.columns,
                                table.columns == 1 ? "" : "s",
                                table.label_column.empty() ? "" : " and labels from " + table.label_column, wanted));
  }
  use_class_numbers(table, options.classes, path);
  return examples_of(std::move(table), options.expected);
}

Examples read_picture(const std::string& path, const ReadImagesOptions& options, bool jpeg) {
  const ImageShape& wanted = options.expected;
  if (options.fit && wanted.size() > 0 && wanted.height == 1) {
    throw DataError(fmt::format("{}: a picture, and the model takes rows of {}; CSV, npz and npy are allowed", path,
                                wanted.size()));
  }
  const int channels = wanted.channels == 3 ? 3 : 1;
  Examples picture = jpeg ? read_jpeg(path, channels) : read_png(path, channels);
  if (options.fit && wanted.size() > 0) resize(picture, wanted.height, wanted.width, *options.fit);
  return picture;
}

Examples read_any(const std::string& path, const ReadImagesOptions& options) {
  if (has_columns(path)) return read_csv_examples(path, options);
  const std::string head = first_bytes(path);
  if (head.starts_with("\x89PNG"sv)) return read_picture(path, options, false);
  if (head.starts_with("\xff\xd8\xff"sv)) return read_picture(path, options, true);
  if (head.starts_with("PK"sv)) return read_npz_images(path, options);
  if (head.starts_with("\x93NUMPY"sv)) {
    return images_from_array(parse_npy(base::read_file(path, kMaxNpy), path), options.expected, path);
  }
  if (head.starts_with("\x1f\x8b"sv) || head.starts_with("\0\0"sv)) return read_idx_images(path);
  throw DataError(path + ": unknown format; PNG, JPEG, npz, npy, idx (plain or gzip) and .csv are allowed");
}

}  // namespace

Examples read_images(const std::string& path, const ReadImagesOptions& options) {
  Examples examples = read_any(path, options);
  const ImageShape& expected = options.expected;
  if (expected.size() == 0 || examples.shape == expected) return examples;
  if (expected.height == 1 && examples.shape.height == 1) {
    throw DataError(
        fmt::format("{}: {} values per row; the model takes {}", path, examples.shape.size(), expected.size()));
  }
  throw DataError(fmt::format("{}: images of {} (channels x height x width); {} is expected", path,
                              to_string(examples.shape), to_string(expected)));
}

}  // namespace lockstep::data
