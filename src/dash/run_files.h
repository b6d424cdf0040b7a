// The folders of runs, seen from outside: which exist, and whether their files have changed. Free functions; any
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dash {

/// Returns the names of real folders in a folder, sorted: without hidden ones, names that are not UTF-8 or hold control
/// characters, and links that lead out of it.
std::vector<std::string> folders_in(const std::string& folder);

/// Returns whether a path lies in the folder once all links are followed.
bool lies_within(const std::filesystem::path& path, const std::filesystem::path& folder);

struct Stamp {
  uint64_t hash = 0;   ///< hash of the names, times and sizes of the files that records are read from
  double changed = 0;  ///< newest time among them, seconds since 1970
};

/// Returns nothing if it is not a run, or if one of these files is a link out of the run's folder.
std::optional<Stamp> stamp_of(const std::string& run);

}  // namespace lockstep::dash
