#include "dash/run_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "records/run_summary.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;

bool is_record(std::string_view name) {
  return name.ends_with(".csv") || name.ends_with(".yaml") || name.ends_with(".json") || name.ends_with(".jsonl");
}

bool is_role(std::string_view name) {
  return name.starts_with("worker-") || name.starts_with("ps-") || name.starts_with("evaluator-") ||
         name.starts_with("chief-");
}

struct Scan {
  const std::string run;
  std::vector<std::pair<std::string, struct stat>> files;
  bool leaves = false;  ///< a link leads out of the run's folder

  void add(const fs::path& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return;
    if (S_ISLNK(info.st_mode)) {
      if (!lies_within(path, run)) leaves = true;
      if (::stat(path.c_str(), &info) != 0) return;
    }
    files.emplace_back(path.string(), info);
  }

  void look(const fs::path& folder, bool roles) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_record(name)) add(entry.path());
      if (!roles || !is_role(name)) continue;
      if (entry.is_symlink(ignored) && !lies_within(entry.path(), run)) leaves = true;
      if (entry.is_directory(ignored)) look(entry.path(), false);
    }
  }
};

}  // namespace

bool lies_within(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  const fs::path root = fs::canonical(folder, error);
  if (error) return false;
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  return end == root.end() && real != root;
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || records::printable(name) != name) continue;
    if (!entry.is_directory(ignored)) continue;
    if (entry.is_symlink(ignored) && !lies_within(entry.path(), folder)) continue;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Stamp> stamp_of(const std::string& run) {
  Scan scan{run, {}, false};
  scan.look(run, true);
  const bool is_run =
      std::any_of(scan.files.begin(), scan.files.end(), [&](const auto& f) { return f.first == run + "/config.yaml"; });
  if (!is_run || scan.leaves) return std::nullopt;
  std::sort(scan.files.begin(), scan.files.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Stamp stamp{base::kHashStart, 0};
  for (const auto& [path, info] : scan.files) {
    stamp.hash = base::hashed(stamp.hash, path);
    stamp.hash = base::hashed(stamp.hash, static_cast<uint64_t>(info.st_size));
    stamp.hash = base::hashed(stamp.hash, static_cast<uint64_t>(info.st_mtim.tv_sec));
    stamp.hash = base::hashed(stamp.hash, static_cast<uint64_t>(info.st_mtim.tv_nsec));
    stamp.hash = base::hashed(stamp.hash, static_cast<uint64_t>(info.st_ino));
    stamp.changed = std::max(stamp.changed, static_cast<double>(info.st_mtim.tv_sec) + info.st_mtim.tv_nsec * 1e-9);
  }
  return stamp;
}

}  // namespace lockstep::dash
