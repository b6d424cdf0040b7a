// The data sets known by name: mnist, fashion-mnist and synthetic; where they are looked for and how they are had.
//
// Looked for, each as DIR/NAME and as DIR itself: the folder given (--data), $LOCKSTEP_DATA, the user's cache
// ($XDG_CACHE_HOME/lockstep or ~/.cache/lockstep), the system's folder (/usr/share/datasets). MNIST is then fetched
// into the cache. Free functions, any thread; nothing is remembered between calls and only `from_environment` reads the
// environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"

namespace lockstep::data {

struct SourceOptions {
  std::string data_dir;   ///< --data; must exist when given
  std::string env_dir;    ///< $LOCKSTEP_DATA
  std::string cache_dir;  ///< made when something is fetched; empty: there is none
  std::string system_dir = "/usr/share/datasets";
  std::vector<std::string>
      mirrors;        ///< of MNIST; empty: the public ones. $LOCKSTEP_MNIST_MIRROR (commas between several)
  std::string proxy;  ///< $https_proxy
  bool may_fetch = true;
  FetchLimits limits;

  static SourceOptions from_environment(const std::string& data_dir = "");
};

struct LoadOptions {
  SourceOptions source = SourceOptions::from_environment();
  int64_t holdout = 0;      ///< the last N training examples become the validation split
  int64_t train_limit = 0;  ///< then keep only the first N training examples; 0: all
  int64_t test_limit = 0;
  uint64_t seed = 1;  ///< of synthetic data
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

/// Makes sure the data set is on this machine and returns its folder (empty for synthetic). UsageError for an unknown
/// name, IoError that says how to provide it when it cannot be had.
std::string fetch(const std::string& name, const SourceOptions& options, const FetchCallback& progress = {});

/// Finds or fetches, reads and checks a data set.
Dataset load(const std::string& name, const LoadOptions& options, const FetchCallback& progress = {});

}  // namespace lockstep::data
