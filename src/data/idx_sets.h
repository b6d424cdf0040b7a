// The data sets of four idx files: mnist and fashion-mnist. Free functions, any thread; nothing is remembered.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"
#include "data/source.h"

namespace lockstep::data {

std::vector<std::string> idx_set_names();
bool is_idx_set(const std::string& name);

/// "handwritten digits, ..."
std::string idx_set_description(const std::string& name);

struct IdxSetState {
  std::string folder;  ///< where it was found; empty: not here
  std::string how;     ///< to get it
};

/// Looks, fetches nothing. IoError where a folder given does not exist or has only some of the files.
IdxSetState look_for_idx_set(const std::string& name, const SourceOptions& options);

/// Makes sure that it is on this machine and returns its folder; IoError that says how to provide it otherwise.
std::string provide_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress);

/// Finds or fetches it, reads and checks it.
Dataset read_idx_set(const std::string& name, const SourceOptions& options, const FetchCallback& progress);

}  // namespace lockstep::data
