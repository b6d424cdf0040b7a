// The data sets known by name and their sources, and the user's own data, by path.
//
// Looks in these places, each as DIR/NAME and as DIR itself: the folder given (--data), $LOCKSTEP_DATA, the user's
// cache ($XDG_CACHE_HOME/lockstep or ~/.cache/lockstep), the system's folder (/usr/share/datasets). MNIST is fetched
// into the cache if none has it. Free functions, any thread; keeps no state between calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"
#include "data/source.h"

namespace lockstep::data {

struct LoadOptions {
  SourceOptions source = SourceOptions::from_environment();
  ImageShape expected;       ///< image shape the model is made for; empty: unknown
  std::string label_column;  ///< for own data in CSV
  int64_t holdout = 0;       ///< the last N training examples become the validation split
  int64_t train_limit = 0;   ///< after holdout, keep only the first N training examples; 0: all
  int64_t test_limit = 0;
  bool standardise =
      false;         ///< scale pixels by all training examples that are not held out, however few of them are kept
  double scale = 1;  ///< then multiply the number of training examples by this: rescale()

  // For generated data; 0: the data set's own size. test_size also applies to own data without a test split.
  int64_t train_size = 0;
  int64_t test_size = 0;
  int64_t classes = 0;
  bool fresh = true;  ///< images: make each when needed, instead of all at the start
  uint64_t seed = 1;
};

struct CatalogEntry {
  std::string name;
  std::string description;
  std::string folder;  ///< folder of the data; empty: not on this machine
  std::string how;     ///< if missing, how to get it; if present, how it was found
  bool available = false;
};

std::vector<std::string> dataset_names();
std::vector<CatalogEntry> list(const SourceOptions& options);

/// Returns true if a data set of that name or path may have a validation split without a holdout.
bool may_have_validation(const std::string& name);

/// Ensures that the data set is on this machine and returns its folder (empty if it needs no files). Throws UsageError
/// for an unknown name, and IoError that says how to provide data that cannot be fetched.
std::string fetch(const std::string& name, const SourceOptions& options, const FetchCallback& progress = {});

/// Finds or fetches, reads or generates, and checks a data set: a name, or a path of own data (own_data.h).
Dataset load(const std::string& name, const LoadOptions& options, const FetchCallback& progress = {});

}  // namespace lockstep::data
