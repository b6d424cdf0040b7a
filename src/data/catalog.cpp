#include "data/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/suggest.h"
#include "data/clutter.h"
#include "data/idx_sets.h"
#include "data/own_data.h"
#include "data/pixel_scaling.h"
#include "data/random_images.h"
#include "data/synthetic.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr const char* kSynthetic = "synthetic";
constexpr const char* kImages = "images";
constexpr const char* kCluttered = "cluttered-mnist";
constexpr const char* kClutteredMade = "cluttered-mnist-generated";
constexpr const char* kDigits = "mnist";
constexpr const char* kClutteredFile = "mnist_sequence1_sample_5distortions5x5.npz";
constexpr ImageShape kClutteredShape{1, 40, 40};
constexpr int kDigitClasses = 10;

void check_name(const std::string& name) {
  const std::vector<std::string> names = dataset_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw UsageError(fmt::format("unknown data set '{}'{}; own data is a path that ends in .npz or .csv", name,
                               base::hint(name, names)));
}

/// Returns the .npz file of cluttered digits in a folder: the one with the known name, or else the only one; empty if
/// none.
std::string find_npz(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename() == kClutteredFile) return entry.path();
    if (entry.path().extension() == ".npz") found.push_back(entry.path());
  }
  return found.size() == 1 ? found.front() : std::string();
}

std::string find_cluttered(const SourceOptions& options) {
  for (const std::string& folder : {options.data_dir, options.env_dir, options.cache_dir, options.system_dir}) {
    if (folder.empty()) continue;
    if (std::string path = find_npz(folder + "/" + kCluttered); !path.empty()) return path;
    if (folder == options.cache_dir || folder == options.system_dir) continue;
    const std::string path = folder + "/" + kClutteredFile;
    if (std::filesystem::is_regular_file(path)) return path;
  }
  return {};
}

Dataset read_cluttered(const std::string& path) {
  Dataset dataset = read_own_data(path, {.expected = kClutteredShape});
  if (dataset.shape() != kClutteredShape || dataset.train.labels.empty() || dataset.classes() > kDigitClasses) {
    throw DataError(fmt::format("{}: examples of {} and {} classes; cluttered digits are 1x40x40 and of {}", path,
                                to_string(dataset.shape()), dataset.classes(), kDigitClasses));
  }
  for (Examples* part : {&dataset.train, &dataset.validation, &dataset.test}) part->classes = kDigitClasses;
  for (int i = 0; i < kDigitClasses; ++i) dataset.class_names.push_back(std::to_string(i));
  return dataset;
}

int64_t or_default(int64_t given, int64_t otherwise) { return given > 0 ? given : otherwise; }

Dataset make_cluttered(const LoadOptions& options, const FetchCallback& progress) {
  const Dataset digits = read_idx_set(kDigits, options.source, progress);
  ClutterOptions clutter_options;
  clutter_options.train = or_default(options.train_size, clutter_options.train);
  clutter_options.test = or_default(options.test_size, clutter_options.test);
  clutter_options.seed = options.seed;
  return clutter(digits, clutter_options);
}

Dataset make_synthetic(const LoadOptions& options) {
  SyntheticOptions synthetic_options;
  synthetic_options.train = or_default(options.train_size, synthetic_options.train);
  synthetic_options.test = or_default(options.test_size, synthetic_options.test);
  synthetic_options.classes = static_cast<int>(or_default(options.classes, synthetic_options.classes));
  synthetic_options.seed = options.seed;
  return synthetic(synthetic_options);
}

Dataset make_images(const LoadOptions& options) {
  RandomImagesOptions images;
  images.train = or_default(options.train_size, images.train);
  images.test = or_default(options.test_size, images.test);
  images.classes = static_cast<int>(or_default(options.classes, images.classes));
  if (options.expected.size() > 0) images.shape = options.expected;
  images.fresh = options.fresh;
  images.seed = options.seed;
  return random_images(images);
}

/// Refuses sizes that the data set does not take, which would otherwise be ignored.
void check_sizes(const std::string& name, const LoadOptions& options) {
  const bool own = is_own_data(name);
  const bool made = name == kSynthetic || name == kImages || name == kClutteredMade;
  const auto reject = [&](const char* setting, int64_t value, const char* instead) {
    throw UsageError(
        fmt::format("{} {}: {} does not take it, since it is not generated{}", setting, value, name, instead));
  };
  if (options.train_size > 0 && !made) reject("train-size", options.train_size, "; train-limit makes it smaller");
  if (options.test_size > 0 && !made && !own) reject("test-size", options.test_size, "; test-limit makes it smaller");
  if (options.classes > 0 && name != kSynthetic && name != kImages) {
    throw UsageError(fmt::format("classes {}: {} has its own; only {} and {} take a number of classes", options.classes,
                                 name, kSynthetic, kImages));
  }
  if (!options.label_column.empty() && !own) {
    throw UsageError(
        fmt::format("label-column '{}': only for own data in CSV, not for {}", options.label_column, name));
  }
}

Dataset read_or_make(const std::string& name, const LoadOptions& options, const FetchCallback& progress) {
  if (is_own_data(name)) return read_own_data(name, {options.expected, options.label_column, options.test_size});
  check_name(name);
  if (is_idx_set(name)) return read_idx_set(name, options.source, progress);
  if (name == kSynthetic) return make_synthetic(options);
  if (name == kImages) return make_images(options);
  const std::string file = name == kCluttered ? find_cluttered(options.source) : std::string();
  Dataset dataset = file.empty() ? make_cluttered(options, progress) : read_cluttered(file);
  dataset.name = name;
  return dataset;
}

CatalogEntry describe_idx_set(const std::string& name, const SourceOptions& options) {
  CatalogEntry entry{name, idx_set_description(name), "", "", false};
  try {
    const IdxSetState state = look_for_idx_set(name, options);
    entry.folder = state.folder;
    entry.available = !state.folder.empty();
    entry.how = entry.available ? "found" : state.how;
  } catch (const IoError& error) {
    entry.how = error.what();
  }
  return entry;
}

CatalogEntry describe_cluttered(const std::string& file, const CatalogEntry& digits) {
  CatalogEntry entry{kCluttered, "digits among pieces of others, 10000 + 1000 + 1000 images of 40x40, 10 classes", file,
                     "found", true};
  if (!file.empty()) return entry;
  entry.available = digits.available;
  entry.how = digits.available ? "generated from mnist and the seed" : "needs mnist: " + digits.how;
  return entry;
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names = idx_set_names();
  names.insert(names.end(), {kCluttered, kClutteredMade, kImages, kSynthetic});
  return names;
}

std::vector<CatalogEntry> list(const SourceOptions& options) {
  std::vector<CatalogEntry> entries;
  for (const std::string& name : idx_set_names()) entries.push_back(describe_idx_set(name, options));
  const CatalogEntry digits = entries.front();
  entries.push_back(describe_cluttered(find_cluttered(options), digits));
  entries.push_back(describe_cluttered("", digits));
  entries.back().name = kClutteredMade;
  entries.push_back({kImages, "random pixels and labels of the model's size, 1280 + 256 images, 1000 classes", "",
                     "generated from the seed", true});
  entries.push_back({kSynthetic, "blurred prototypes with noise, 10000 + 2000 images of 28x28, 10 classes", "",
                     "generated from the seed", true});
  entries.push_back({"PATH.npz, PATH.csv", "own data: arrays X_train, y_train, ... or columns with a label", "",
                     "named by its path", true});
  return entries;
}

bool may_have_validation(const std::string& name) {
  return is_own_data(name) || name == kCluttered || name == kClutteredMade;
}

std::string fetch(const std::string& name, const SourceOptions& options, const FetchCallback& progress) {
  check_name(name);
  if (is_idx_set(name)) return provide_idx_set(name, options, progress);
  if (name == kSynthetic || name == kImages) return "";
  if (name == kCluttered) {
    const std::string file = find_cluttered(options);
    if (!file.empty()) return std::filesystem::path(file).parent_path();
  }
  return provide_idx_set(kDigits, options, progress);
}

Dataset load(const std::string& name, const LoadOptions& options, const FetchCallback& progress) {
  check_sizes(name, options);
  Dataset dataset = read_or_make(name, options, progress);
  hold_out(dataset, options.holdout);
  if (options.standardise) dataset.pixels = std::make_shared<const PixelScaling>(standardise(dataset.train));
  keep_first(dataset.train, options.train_limit, "training examples");
  keep_first(dataset.test, options.test_limit, "test examples");
  rescale(dataset.train, options.scale);
  return dataset;
}

}  // namespace lockstep::data
