#include "data/own_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "data/npz.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr int64_t kTestShare = 6;  ///< one example in kTestShare is for testing
constexpr int32_t kMostOwnClasses = 1'000'000;

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_csv(std::string_view path) {
  const std::string name = lower_case(path);
  return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

bool is_npz(std::string_view path) { return lower_case(path).ends_with(".npz"); }

using Pair = ArrayNames;

std::string first_of(const Npz& npz, std::initializer_list<std::string> names) {
  const auto* const found = std::find_if(names.begin(), names.end(), [&](const auto& name) { return npz.has(name); });
  return found == names.end() ? std::string() : *found;
}

Pair find_pair(const Npz& npz, std::initializer_list<const char*> splits) {
  for (const std::string split : splits) {
    Pair pair{first_of(npz, {"X_" + split, "x_" + split, split + "_images", split + "_x"}),
              first_of(npz, {"y_" + split, "Y_" + split, split + "_labels", split + "_y"})};
    if (!pair.images.empty()) return pair;
  }
  return {};
}

Pair find_unsplit(const Npz& npz) {
  return {first_of(npz, {"X", "x", "images", "data", "features"}),
          first_of(npz, {"y", "Y", "labels", "label", "target"})};
}

Pair find_only_pair(const Npz& npz) {
  if (Pair train = find_pair(npz, {"train"}); !train.images.empty()) return train;
  Pair pair = find_unsplit(npz);
  if (pair.images.empty() && npz.names().size() == 1) pair.images = npz.names()[0];
  return pair;
}

/// Reshapes an array of images from one of the accepted shapes to (n,c,h,w).
void shape_images(NpyArray& array, const ImageShape& expected, const std::string& source) {
  std::vector<int64_t>& shape = array.shape;
  const std::vector<int64_t> wanted{expected.channels, expected.height, expected.width};
  if (shape.size() < 2 || shape.size() > 4) {
    throw DataError(fmt::format("{}: shape ({}) is not examples; (n,c,h,w), (n,h,w) and (n,f) are allowed", source,
                                fmt::join(shape, ",")));
  }
  const bool flat = shape.size() == 2;
  const bool fits = expected.size() > 0 && flat && shape[1] == static_cast<int64_t>(expected.size());
  // With one channel, channels last means the same bytes.
  const bool channel_last =
      shape.size() == 4 && shape[3] == 1 && expected.channels == 1 && shape[1] == wanted[1] && shape[2] == wanted[2];
  const auto colours = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (shape.size() == 4 && !channel_last && colours(shape[3]) && !colours(shape[1])) {
    throw DataError(
        fmt::format("{}: shape ({}) looks like channels last; (n,c,h,w) is allowed, as by "
                    "numpy.moveaxis(X, 3, 1)",
                    source, fmt::join(shape, ",")));
  }
  if (fits || channel_last) {
    shape = {shape[0], wanted[0], wanted[1], wanted[2]};
  } else if (flat) {
    shape = {shape[0], 1, 1, shape[1]};
  }
}

void check_finite(const Examples& examples, const std::string& source) {
  const auto bad =
      std::find_if(examples.floats.begin(), examples.floats.end(), [](float value) { return !std::isfinite(value); });
  if (bad == examples.floats.end()) return;
  const auto index = static_cast<size_t>(bad - examples.floats.begin());
  throw DataError(fmt::format("{}: value {} of example {} is {}; finite numbers are allowed", source,
                              index % examples.shape.size(), index / examples.shape.size(), *bad));
}

Examples read_pair(const Npz& npz, const Pair& pair, const std::string& path, const OwnDataOptions& options) {
  Examples examples;
  if (pair.images.empty()) return examples;
  const std::string source = path + ":" + pair.images;
  {
    NpyArray array = npz.read(pair.images);
    shape_images(array, options.expected, source);
    examples = images_from_array(array, {}, source);
  }
  check_finite(examples, source);
  if (pair.labels.empty()) return examples;
  examples.labels = labels_from_array(npz.read(pair.labels), path + ":" + pair.labels);
  if (examples.stored() != static_cast<int64_t>(examples.labels.size())) {
    throw DataError(fmt::format("{}: {} examples in {} but {} labels in {}", path, examples.stored(), pair.images,
                                examples.labels.size(), pair.labels));
  }
  return examples;
}

/// Copies the examples whose test is `wanted`.
template <class Test>
Examples pick(const Examples& all, int64_t count, const Test& is_test, bool wanted) {
  Examples part;
  part.shape = all.shape;
  const size_t pixels = all.shape.size();
  part.bytes.reserve(all.bytes.empty() ? 0 : static_cast<size_t>(count) * pixels);
  part.floats.reserve(all.floats.empty() ? 0 : static_cast<size_t>(count) * pixels);
  for (int64_t i = 0; i < all.stored(); ++i) {
    if (is_test(i) != wanted) continue;
    const auto begin = static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * pixels);
    const auto end = begin + static_cast<std::ptrdiff_t>(pixels);
    if (!all.bytes.empty()) part.bytes.insert(part.bytes.end(), all.bytes.begin() + begin, all.bytes.begin() + end);
    if (!all.floats.empty())
      part.floats.insert(part.floats.end(), all.floats.begin() + begin, all.floats.begin() + end);
    if (!all.labels.empty()) part.labels.push_back(all.labels[static_cast<size_t>(i)]);
  }
  return part;
}

/// Cuts the test split from data without one; the origin says which part it is.
void split(Dataset& dataset, Examples all, int64_t test_size) {
  const int64_t count = all.stored();
  const int64_t test = test_size > 0 ? test_size : std::max<int64_t>(count / kTestShare, 1);
  if (test >= count) {
    throw UsageError(fmt::format("{}: {} example{} cannot give {} to the test split; at least 1 must stay for training",
                                 dataset.origin, count, count == 1 ? "" : "s", test));
  }
  const bool sorted = std::is_sorted(all.labels.begin(), all.labels.end()) && !all.labels.empty() &&
                      all.labels.front() != all.labels.back();
  const auto is_test = [&](int64_t i) {
    return sorted ? (i + 1) * test / count > i * test / count : i >= count - test;
  };
  dataset.train = pick(all, count - test, is_test, false);
  dataset.test = pick(all, test, is_test, true);
  dataset.origin += sorted ? fmt::format(", sorted by class; {} spread evenly are the test split", test)
                           : fmt::format(", the last {} are the test split", test);
}

/// Checks that the splits agree and sets the number of classes.
void finish(Dataset& dataset, const std::string& path) {
  int32_t largest = 1;
  for (const Examples* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    if (part->stored() == 0) continue;
    if (part->shape != dataset.train.shape) {
      throw DataError(fmt::format("{}: training examples of {} (channels x height x width) but others of {}", path,
                                  to_string(dataset.train.shape), to_string(part->shape)));
    }
    if (part->labels.empty() != dataset.train.labels.empty()) {
      throw DataError(path + ": some splits have labels and some have none; all or none is allowed");
    }
    for (const int32_t label : part->labels) largest = std::max(largest, label);
  }
  if (largest >= kMostOwnClasses) {
    throw DataError(fmt::format("{}: label {}; 0 to {} are allowed", path, largest, kMostOwnClasses - 1));
  }
  const int classes = std::max(largest + 1, static_cast<int32_t>(dataset.class_names.size()));
  dataset.validation.shape = dataset.train.shape;
  for (Examples* part : {&dataset.train, &dataset.validation, &dataset.test}) part->classes = classes;
}

Dataset from_npz(const Npz& npz, const std::string& path, const OwnDataOptions& options) {
  if (!options.label_column.empty()) {
    throw UsageError(fmt::format("label-column '{}': {} has no columns; label-column applies only to CSV",
                                 options.label_column, path));
  }
  Dataset dataset;
  dataset.origin = path;
  const Pair test = find_pair(npz, {"test"});
  const Pair train = test.images.empty() ? find_only_pair(npz) : find_pair(npz, {"train"});
  if (train.images.empty()) {
    throw DataError(fmt::format("{}: no training examples; X_train, X or images is needed; it has {}", path,
                                fmt::join(npz.names(), ", ")));
  }
  dataset.validation = read_pair(npz, find_pair(npz, {"valid", "val", "validation"}), path, options);
  if (test.images.empty()) {
    split(dataset, read_pair(npz, train, path, options), options.test_size);
  } else {
    if (options.test_size > 0) {
      throw UsageError(fmt::format("test-size {}: {} has a test split of its own; test-limit makes it smaller",
                                   options.test_size, path));
    }
    dataset.train = read_pair(npz, train, path, options);
    dataset.test = read_pair(npz, test, path, options);
  }
  finish(dataset, path);
  return dataset;
}

/// Returns true if these numbers are the pixels of images for the model.
bool are_pixels(const std::vector<float>& values, const ImageShape& shape, const ImageShape& expected) {
  if (shape != expected || expected.height < 2) return false;
  float largest = 0;
  for (const float value : values) {
    if (value < 0 || value > 255 || value != std::floor(value)) return false;
    largest = std::max(largest, value);
  }
  return largest > 1;
}

/// Says which classes a column holds: "3 classes (a, b, c)".
std::string classes_text(const CsvTable& table) {
  constexpr size_t kMostShown = 5;
  const std::vector<std::string>& names = table.class_names;
  if (!names.empty()) {
    const size_t shown = std::min(names.size(), kMostShown);
    return fmt::format("{} class{} ({}{})", names.size(), names.size() == 1 ? "" : "es",
                       fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                       names.size() > shown ? ", ..." : "");
  }
  std::vector<int32_t> labels = table.labels;
  std::sort(labels.begin(), labels.end());
  const auto different = std::unique(labels.begin(), labels.end()) - labels.begin();
  const int32_t classes = std::max(labels[static_cast<size_t>(different) - 1], 1) + 1;
  std::string text = fmt::format("{} classes", classes);
  if (different != classes) text += fmt::format(", of which {} occur", different);
  constexpr std::ptrdiff_t kMany = 100;
  const bool measured = different > kMany && static_cast<size_t>(different) > table.labels.size() / 4;
  return text + (measured ? " (if they are measured values, no classifier can learn them)" : "");
}

Dataset from_csv(CsvTable table, const std::string& path, const OwnDataOptions& options) {
  Dataset dataset;
  dataset.origin = path;
  const std::string found = table.labels.empty() ? "" : classes_text(table);
  dataset.class_names = std::move(table.class_names);
  const std::string label_column = table.label_column;
  Examples all = examples_of(std::move(table), options.expected);
  if (!all.bytes.empty()) dataset.origin += ", pixels from 0 to 255";
  if (!label_column.empty()) dataset.origin += ", labels from " + label_column + ": " + found;
  split(dataset, std::move(all), options.test_size);
  finish(dataset, path);
  return dataset;
}

[[noreturn]] void unknown_format(const std::string& path) {
  throw DataError(path + ": the name of own data ends in .npz, .csv or .csv.gz");
}

}  // namespace

bool is_own_data(std::string_view name) {
  return is_npz(name) || is_csv(name) || name.find('/') != std::string_view::npos;
}

bool has_columns(std::string_view path) { return is_csv(path); }

Examples examples_of(CsvTable table, const ImageShape& expected) {
  Examples all;
  const bool fits = expected.size() > 0 && table.columns == static_cast<int64_t>(expected.size());
  all.shape = fits ? expected : ImageShape{1, 1, static_cast<int>(table.columns)};
  all.labels = std::move(table.labels);
  if (are_pixels(table.values, all.shape, expected)) {
    all.bytes.assign(table.values.begin(), table.values.end());
  } else {
    all.floats = std::move(table.values);
  }
  return all;
}

ArrayNames arrays_to_predict(const Npz& npz) {
  for (const Pair& pair :
       {find_pair(npz, {"test"}), find_unsplit(npz), find_pair(npz, {"valid", "val", "validation"})}) {
    if (!pair.images.empty()) return pair;
  }
  return find_only_pair(npz);
}

Dataset read_own_data(const std::string& path, const OwnDataOptions& options) {
  if (!is_csv(path) && !is_npz(path)) unknown_format(path);
  Dataset dataset = is_csv(path) ? from_csv(read_csv(path, options.label_column), path, options)
                                 : from_npz(Npz::open(path), path, options);
  dataset.name = path;
  return dataset;
}

Dataset parse_own_data(std::span<const uint8_t> file, const std::string& name, const OwnDataOptions& options) {
  if (!is_csv(name) && !is_npz(name)) unknown_format(name);
  Dataset dataset = is_csv(name) ? from_csv(parse_csv(file, name, options.label_column), name, options)
                                 : from_npz(Npz::parse({file.begin(), file.end()}, name), name, options);
  dataset.name = name;
  return dataset;
}

}  // namespace lockstep::data
