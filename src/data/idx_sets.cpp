#include "data/idx_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "data/idx.h"
#include "data/unpack.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr int kClasses = 10;

enum File { kTrainImages, kTrainLabels, kTestImages, kTestLabels, kFiles };

/// Names of the published files, without ".gz".
constexpr std::array<const char*, kFiles> kFileNames{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/// Bytes of each unpacked file: the header, and 60000 or 10000 images of 28x28 or labels.
constexpr std::array<uint64_t, kFiles> kFileSizes{16 + 60000 * 784, 8 + 60000, 16 + 10000 * 784, 8 + 10000};

/// A data set of four idx files.
struct Known {
  const char* name;
  const char* title;
  const char* description;
  std::array<const char*, kFiles> md5;  ///< md5 of the unpacked files
  std::array<const char*, kClasses> class_names;
  std::array<const char*, 2> mirrors;
  const char* package;  ///< Debian package; empty: fetched from the mirrors
};

constexpr std::array<Known, 2> kKnownSets{
    {{"mnist",
      "MNIST",
      "handwritten digits, 60000 + 10000 images of 28x28, 10 classes",
      {"6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624", "2646ac647ad5339dbf082846283269ea",
       "27ae3e4e09519cfbb04c329615203637"},
      {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
      {"https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"},
      nullptr},
     {"fashion-mnist",
      "Fashion-MNIST",
      "pieces of clothing, 60000 + 10000 images of 28x28, 10 classes",
      {"f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9", "8181f5470baa50b63fa0f6fddb340f0a",
       "15d484375f8d13e6eb1aabb0c3f46965"},
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
      {},
      "dataset-fashion-mnist"}}};

const Known& find_known(const std::string& name) {
  for (const Known& known : kKnownSets) {
    if (name == known.name) return known;
  }
  throw UsageError("unknown data set '" + name + "'");
}

/// The place of a data set.
struct Found {
  std::string folder;
  std::array<std::string, kFiles> paths;
};

/// Returns the file under any of its known names; empty if there is none.
std::string find_file(const std::string& folder, const std::string& name) {
  std::string dotted = name;  // "train-images.idx3-ubyte", as in some archives
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& spelling : {name, dotted}) {
    for (const char* suffix : {"", ".gz"}) {
      std::error_code ignored;
      std::string path = fmt::format("{}/{}{}", folder, spelling, suffix);
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  return {};
}

enum class Partial { kIgnore, kReject };

std::optional<Found> look_in(const std::string& folder, Partial partial) {
  Found found{folder, {}};
  std::vector<std::string> missing;
  for (size_t i = 0; i < kFiles; ++i) {
    found.paths[i] = find_file(folder, kFileNames[i]);
    if (found.paths[i].empty()) missing.emplace_back(kFileNames[i]);
  }
  if (missing.empty()) return found;
  if (missing.size() < kFiles && partial == Partial::kReject) {
    throw IoError(
        fmt::format("{} has only some of the four files: {} missing (plain or .gz)", folder, fmt::join(missing, ", ")));
  }
  return std::nullopt;
}

/// Returns true if the folder holds another data set. All of this family have the same file names, so a folder with a
/// generic name may hold any of them.
bool holds_another(const Found& found, const Known& wanted) {
  try {
    const std::optional<std::string> md5 = md5_of_content(found.paths[kTestLabels], kFileSizes[kTestLabels]);
    return std::any_of(kKnownSets.begin(), kKnownSets.end(), [&](const Known& known) {
      return md5 == known.md5[kTestLabels] && std::string_view(known.name) != wanted.name;
    });
  } catch (const DataError&) {
    return false;  // reading it will report the error
  }
}

std::optional<Found> find(const Known& known, const SourceOptions& options) {
  if (!options.data_dir.empty() && !std::filesystem::is_directory(options.data_dir)) {
    throw IoError(fmt::format("--data {}: no such folder", options.data_dir));
  }
  for (const std::string& folder : {options.data_dir, options.env_dir}) {
    if (folder.empty()) continue;
    if (auto found = look_in(folder + "/" + known.name, Partial::kReject)) return found;
    auto found = look_in(folder, Partial::kReject);
    if (found && !holds_another(*found, known)) return found;
  }
  for (const std::string& folder : {options.cache_dir, options.system_dir}) {
    if (folder.empty()) continue;
    if (auto found = look_in(folder + "/" + known.name, Partial::kIgnore)) return found;
  }
  return std::nullopt;
}

std::string how_to_provide(const Known& known, const SourceOptions& options) {
  std::string text = fmt::format("put {} (plain or .gz) into a folder and name it with --data DIR or LOCKSTEP_DATA=DIR",
                                 fmt::join(kFileNames, ", "));
  if (!options.cache_dir.empty()) text += fmt::format(", or put them into {}/{}", options.cache_dir, known.name);
  return text;
}

std::string offline_choice() {
  return "; without internet use --dataset fashion-mnist (Debian package dataset-fashion-mnist)";
}

std::string fetch_to_cache(const Known& known, const SourceOptions& options, const FetchCallback& progress) {
  if (!options.may_fetch) throw IoError("fetching is switched off");
  if (options.cache_dir.empty()) throw IoError("no cache folder: neither XDG_CACHE_HOME nor HOME is set");
  std::vector<RemoteFile> files;
  for (size_t i = 0; i < kFiles; ++i)
    files.push_back({std::string(kFileNames[i]) + ".gz", known.md5[i], kFileSizes[i]});
  std::string folder = options.cache_dir + "/" + known.name;
  std::vector<std::string> mirrors = options.mirrors;
  if (mirrors.empty()) mirrors.assign(known.mirrors.begin(), known.mirrors.end());
  fetch_files(files, folder, mirrors, options.limits, options.proxy, progress);
  return folder;
}

Found find_or_fetch(const Known& known, const SourceOptions& options, const FetchCallback& progress) {
  if (auto found = find(known, options)) return *found;
  if (known.package != nullptr) {
    throw IoError(fmt::format("{} is not on this machine: apt-get install {}, or {}", known.title, known.package,
                              how_to_provide(known, options)));
  }
  try {
    const std::string folder = fetch_to_cache(known, options, progress);
    if (auto found = look_in(folder, Partial::kReject)) return *found;
    throw IoError(folder + ": the fetched files have disappeared");
  } catch (const IoError& error) {
    throw IoError(fmt::format("{} is not on this machine and cannot be fetched ({}). To provide it, {}{}", known.title,
                              error.what(), how_to_provide(known, options), offline_choice()));
  }
}

Dataset read(const Known& known, const Found& found) {
  Dataset dataset;
  dataset.name = known.name;
  dataset.origin = found.folder;
  dataset.class_names.assign(known.class_names.begin(), known.class_names.end());
  dataset.train = read_idx_pair(found.paths[kTrainImages], found.paths[kTrainLabels], kClasses);
  dataset.test = read_idx_pair(found.paths[kTestImages], found.paths[kTestLabels], kClasses);
  dataset.validation.shape = dataset.train.shape;
  dataset.validation.classes = kClasses;
  if (dataset.train.shape != dataset.test.shape) {
    throw DataError(fmt::format("{}: training images of {} but test images of {}", found.folder,
                                to_string(dataset.train.shape), to_string(dataset.test.shape)));
  }
  return dataset;
}

Dataset read_checked(const Known& known, const Found& found, const SourceOptions& options) {
  try {
    return read(known, found);
  } catch (const DataError& error) {
    if (options.cache_dir.empty() || found.folder != options.cache_dir + "/" + known.name) throw;
    throw DataError(fmt::format("{}; remove {} to have it fetched again", error.what(), found.folder));
  }
}

}  // namespace

std::vector<std::string> idx_set_names() {
  std::vector<std::string> names;
  for (const Known& known : kKnownSets) names.emplace_back(known.name);
  return names;
}

bool is_idx_set(const std::string& name) {
  return std::any_of(kKnownSets.begin(), kKnownSets.end(), [&](const Known& known) { return name == known.name; });
}

std::string idx_set_description(const std::string& name) { return find_known(name).description; }

IdxSetState look_for_idx_set(const std::string& name, const SourceOptions& options) {
  const Known& known = find_known(name);
  const auto found = find(known, options);
  return {found ? found->folder : "", known.package != nullptr
                                          ? fmt::format("apt-get install {}", known.package)
                                          : fmt::format("lockstep data get {} (fetched once)", known.name)};
}

std::string provide_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress) {
  return find_or_fetch(find_known(name), options, progress).folder;
}

Dataset read_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress) {
  const Known& known = find_known(name);
  return read_checked(known, find_or_fetch(known, options, progress), options);
}

}  // namespace lockstep::data
