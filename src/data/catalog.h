// The data sets known by name, where they are looked for and how they are had; and the user's own, by path.
//
// Looked for, each as DIR/NAME and as DIR itself: the folder given (--data), $LOCKSTEP_DATA, the user's cache
// ($XDG_CACHE_HOME/lockstep or ~/.cache/lockstep), the system's folder (/usr/share/datasets). MNIST is then fetched
// into the cache. Free functions, any thread; nothing is remembered between calls.
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
  ImageShape expected;       ///< what the model is made for; empty: unknown
  std::string label_column;  ///< of own data in CSV
  int64_t holdout = 0;       ///< the last N training examples become the validation split
  int64_t train_limit = 0;   ///< then keep only the first N training examples; 0: all
  int64_t test_limit = 0;
  bool standardise = false;  ///< by all training examples that are not held out, however few of them are kept
  double scale = 1;          ///< then so many times the training examples: rescale()

  // Of generated data; 0: the data set's own. test_size is also for own data without a test split.
  int64_t train_size = 0;
  int64_t test_size = 0;
  int64_t classes = 0;
  bool fresh = true;  ///< images: each made when it is needed, instead of all at the start
  uint64_t seed = 1;
};

struct CatalogEntry {
  std::string name;
  std::string description;
  std::string folder;  ///< where it was found; empty: not here
  std::string how;     ///< how to get it when it is not here; how it was found when it is
  bool available = false;
};

std::vector<std::string> dataset_names();
std::vector<CatalogEntry> list(const SourceOptions& options);

/// Whether a data set of that name or path may have a validation split without a holdout.
bool may_have_validation(const std::string& name);

/// Makes sure the data set is on this machine and returns its folder (empty where it needs no files). UsageError for an
/// unknown name, IoError that says how to provide it when it cannot be had.
std::string fetch(const std::string& name, const SourceOptions& options, const FetchCallback& progress = {});

/// Finds or fetches, reads or makes, and checks a data set: a name, or a path of own data (own_data.h).
Dataset load(const std::string& name, const LoadOptions& options, const FetchCallback& progress = {});

}  // namespace lockstep::data
