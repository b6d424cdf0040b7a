// The data sets of four idx files: mnist and fashion-mnist. Free functions, any thread; keeps no state.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"
#include "data/source.h"

namespace lockstep::data {

std::vector<std::string> idx_set_names();
bool is_idx_set(const std::string& name);

/// Returns "handwritten digits, ...".
std::string idx_set_description(const std::string& name);

struct IdxSetState {
  std::string folder;  ///< folder of the data; empty: not on this machine
  std::string how;     ///< how to get it
};

/// Looks for the data set without fetching. Throws IoError if a given folder does not exist or has only some of the
/// files.
IdxSetState look_for_idx_set(const std::string& name, const SourceOptions& options);

/// Ensures that the data set is on this machine and returns its folder. Throws IoError that says how to provide it
/// otherwise.
std::string provide_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress);

/// Finds or fetches the data set, reads and checks it.
Dataset read_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress);

}  // namespace lockstep::data
