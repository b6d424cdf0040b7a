// Where data sets are looked for and whether they may be fetched. A plain value; only `from_environment` reads the
// environment.
#pragma once

#include <string>
#include <vector>

#include "data/fetch.h"

namespace lockstep::data {

struct SourceOptions {
  std::string data_dir;   ///< --data; must exist when given
  std::string env_dir;    ///< $LOCKSTEP_DATA
  std::string cache_dir;  ///< made when something is fetched; empty: there is none
  std::string system_dir = "/usr/share/datasets";
  /// Of MNIST; empty: the public ones. $LOCKSTEP_MNIST_MIRROR (commas between several).
  std::vector<std::string> mirrors;
  std::string proxy;  ///< $https_proxy
  bool may_fetch = true;
  FetchLimits limits;

  static SourceOptions from_environment(const std::string& data_dir = "");
};

}  // namespace lockstep::data
