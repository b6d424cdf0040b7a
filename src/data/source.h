// The folders to search for data sets, and permission to fetch. A plain value; only `from_environment` reads the
// environment.
#pragma once

#include <string>
#include <vector>

#include "data/fetch.h"

namespace lockstep::data {

struct SourceOptions {
  std::string data_dir;   ///< --data; must exist if given
  std::string env_dir;    ///< $LOCKSTEP_DATA
  std::string cache_dir;  ///< created at the first fetch; empty: none
  std::string system_dir = "/usr/share/datasets";
  /// mirrors of MNIST; empty: the public ones. $LOCKSTEP_MNIST_MIRROR (separated by commas).
  std::vector<std::string> mirrors;
  std::string proxy;  ///< $https_proxy
  bool may_fetch = true;
  FetchLimits limits;

  static SourceOptions from_environment(const std::string& data_dir = "");
};

}  // namespace lockstep::data
