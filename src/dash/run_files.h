// The folders of runs, seen from outside: which there are, and whether their files have changed. Free functions; any
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dash {

/// Real folders in a folder, by name: no hidden ones, none whose name is no UTF-8 or controls a terminal, and no links
/// that lead out of it. Sorted.
std::vector<std::string> folders_in(const std::string& folder);

/// Whether a path, once all links are followed, lies in the folder.
bool lies_within(const std::filesystem::path& path, const std::filesystem::path& folder);

struct Stamp {
  uint64_t hash = 0;   ///< of the names, times and sizes of the files that records are read from
  double changed = 0;  ///< the newest time of them, seconds since 1970
};

/// Nothing where it is no run, or one of these files is a link out of the run's folder.
std::optional<Stamp> stamp_of(const std::string& run);

}  // namespace lockstep::dash
