#include "base/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/parallel.h"

namespace lockstep::base {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the limit in a group's folder, of either version of control groups.
std::optional<double> limit_in(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::istringstream second(text_of(folder + "/cpu.max"));  // "max 100000" without a limit
  if (second >> quota >> period && quota > 0 && period > 0) return quota / period;
  std::istringstream first_quota(text_of(folder + "/cpu.cfs_quota_us"));  // -1 without a limit
  std::istringstream first_period(text_of(folder + "/cpu.cfs_period_us"));
  if (first_quota >> quota && first_period >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

/// Returns the folders in which groups of a line of /proc/self/cgroup ("4:cpu,cpuacct:/a/b") may lie.
std::vector<std::string> folders_of(const std::string& line, const std::string& root) {
  const size_t controllers = line.find(':');
  const size_t path = line.find(':', controllers + 1);
  if (controllers == std::string::npos || path == std::string::npos) return {};
  const std::string names = line.substr(controllers + 1, path - controllers - 1);
  const std::string group = line.substr(path + 1);
  std::vector<std::string> hierarchies;
  if (names.empty()) hierarchies = {root, root + "/unified"};
  if (("," + names + ",").find(",cpu,") != std::string::npos) hierarchies = {root + "/" + names, root + "/cpu"};
  std::vector<std::string> folders;
  for (const std::string& hierarchy : hierarchies) {
    for (fs::path at(group); at.has_relative_path(); at = at.parent_path()) {
      folders.push_back(hierarchy + at.string());
    }
    folders.push_back(hierarchy);  // in a container, its own group
  }
  return folders;
}

}  // namespace

std::optional<double> allowed_cores(const std::string& membership, const std::string& root) {
  std::optional<double> least;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& folder : folders_of(line, root)) {
      const std::optional<double> limit = limit_in(folder);
      if (limit) least = std::min(least.value_or(*limit), *limit);
    }
  }
  return least;
}

std::optional<double> own_allowed_cores() { return allowed_cores(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"); }

int useful_threads(int cores, std::optional<double> quota) {
  if (!quota) return cores;
  constexpr double kAlmost = 1e-3;
  return std::clamp(static_cast<int>(std::floor(*quota + kAlmost)), 1, cores);
}

int useful_threads() { return useful_threads(available_cores(), own_allowed_cores()); }

}  // namespace lockstep::base
