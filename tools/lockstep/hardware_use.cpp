#include "hardware_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "observe/monitor/gpu_reader.h"

namespace lockstep::tools {
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

std::string cores_text(int usable, int present, int threads, std::optional<double> quota) {
  std::string text = fmt::format("{} of {} core{}, {} thread{}", usable, present, present == 1 ? "" : "s", threads,
                                 threads == 1 ? "" : "s");
  if (usable < present) text += "; this process may not use the others";
  if (quota && *quota < threads) {
    text +=
        fmt::format("; its control group allows the time of {:.3g} cores, to which --threads does not adapt", *quota);
  }
  return text;
}

std::string bf16_text(bool avx512_bf16, bool amx) {
  if (!avx512_bf16) return "no: AVX512_BF16 is not in use";
  return fmt::format("only with --precision bf16: AVX512_BF16{}", amx ? " and AMX" : "; no AMX");
}

std::string gpu_text(const std::vector<std::string>& gpus, const std::vector<std::string>& backends) {
  if (gpus.empty()) return "none found";
  const bool backend = std::find(backends.begin(), backends.end(), "cuda") != backends.end();
  return fmt::format("{}: {}", fmt::join(gpus, ", "),
                     backend ? "only with --backend cuda" : "not used, as Lockstep computes on the CPU");
}

std::optional<double> own_allowed_cores() { return allowed_cores(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"); }

std::vector<std::string> gpus() {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
    std::istringstream lines(text_of(entry.path().string() + "/information"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("Model:")) continue;
      const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      if (begin != std::string::npos) found.push_back(line.substr(begin));
    }
  }
  const size_t counted = observe::GpuReader().count();
  if (found.size() < counted) found.resize(counted, "NVIDIA GPU");
  return found;
}

}  // namespace lockstep::tools
