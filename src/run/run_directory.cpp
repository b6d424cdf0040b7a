#include "run/run_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

void check_name(const std::string& name) {
  if (!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos) return;
  throw UsageError("name: '" + name + "' cannot name a run; use --run-dir for a path");
}

/// Returns the largest n of the folders <name>-<n>, 0 if there are none.
uint64_t largest_number(const std::string& folder, const std::string& name) {
  uint64_t largest = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(name + "-")) continue;
    uint64_t n = 0;
    const char* begin = file.data() + name.size() + 1;
    const char* end = file.data() + file.size();
    const auto [stop, error] = std::from_chars(begin, end, n);
    if (error == std::errc() && stop == end && n < UINT64_MAX - 1) largest = std::max(largest, n);
  }
  return largest;
}

base::LockFile lock_run(const std::string& path) {
  std::optional<base::LockFile> lock = base::LockFile::try_lock(path + "/.lock");
  if (!lock) throw IoError("run " + path + " is in use by another process");
  return std::move(*lock);
}

/// Takes the locks of the run and of its roles.
std::vector<base::LockFile> lock_all(const std::string& path) {
  std::vector<base::LockFile> locks;
  locks.push_back(lock_run(path));
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    files.push_back(entry.path().string());
    if (!entry.is_directory(ignored) || entry.is_symlink(ignored)) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), ignored)) files.push_back(inner.path().string());
  }
  for (const std::string& file : files) {
    const std::string name = fs::path(file).filename().string();
    if (!name.starts_with(".") || !name.ends_with(".lock") || name == ".lock") continue;
    std::optional<base::LockFile> lock = base::LockFile::try_lock(file);
    if (!lock) throw IoError("run " + path + " is in use by another process");
    locks.push_back(std::move(*lock));
  }
  return locks;
}

/// Returns true for files that every start writes before there is anything to keep: settings, locks, logs without a
/// line.
bool comes_with_a_start(const fs::directory_entry& entry) {
  constexpr std::array<std::string_view, 8> kAlways{"config.yaml", "cluster.yaml",    "launch.yaml", "launch-id",
                                                    "nodes.json",  "throttling.json", "monitor.csv", "phases.csv"};
  const std::string name = entry.path().filename().string();
  if (entry.is_directory() || std::find(kAlways.begin(), kAlways.end(), name) != kAlways.end()) return true;
  if (name.ends_with(".lock") || name.starts_with("events.out.tfevents.")) return true;
  if (!name.ends_with(".csv")) return entry.file_size() == 0;
  std::ifstream file(entry.path());
  std::string header;
  std::getline(file, header);
  return file.eof() || file.peek() == std::ifstream::traits_type::eof();
}

bool is_unused(const std::string& path) try {
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!comes_with_a_start(entry)) return false;
  }
  return true;
} catch (const fs::filesystem_error&) {
  return false;
}

bool remove_folder(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  return !fs::exists(path, ignored);
}

bool is_run(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path + "/config.yaml", ignored);
}

/// Returns the names of the runs in a folder, the newest first.
std::vector<std::string> runs_in(const std::string& runs_dir) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_dir, ignored)) {
    const std::string path = entry.path().string();
    if (is_run(path)) found.emplace_back(fs::last_write_time(path + "/config.yaml", ignored), entry.path().filename());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

/// Returns " (did you mean 'lr-1'?)" or the newest runs of the folder; empty if it has none.
std::string run_hint(const std::string& run, const std::string& runs_dir) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> runs = runs_in(runs_dir);
  if (runs.empty()) return "";
  if (const std::string nearest = base::nearest(run, runs); !nearest.empty()) {
    return fmt::format(" (did you mean '{}'?)", nearest);
  }
  const size_t shown = std::min(runs.size(), kShown);
  std::string names;
  for (size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + runs[i];
  if (runs.size() > shown) names += fmt::format(" and {} more", runs.size() - shown);
  return fmt::format("; {} has {}", runs_dir, names);
}

}  // namespace

RunDirectory::RunDirectory(std::string path, base::LockFile lock, bool made)
    : path_(std::move(path)), lock_(std::move(lock)), made_(made), exceptions_(std::uncaught_exceptions()) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(other.path_),
      lock_(std::move(other.lock_)),
      made_(std::exchange(other.made_, false)),
      exceptions_(other.exceptions_) {}

RunDirectory& RunDirectory::operator=(RunDirectory&& other) noexcept {
  path_ = other.path_;
  lock_ = std::move(other.lock_);
  made_ = std::exchange(other.made_, false);
  exceptions_ = other.exceptions_;
  return *this;
}

RunDirectory::~RunDirectory() {
  if (made_ && std::uncaught_exceptions() > exceptions_) discard_if_unused();
}

bool RunDirectory::discard_if_unused() {
  if (!made_ || !is_unused(path_)) return false;
  made_ = false;
  return remove_folder(path_);
}

bool RunDirectory::discard_if_unused(const std::string& path) try {
  const std::optional<base::LockFile> lock = base::LockFile::try_lock(path + "/.lock");
  return lock && is_unused(path) && remove_folder(path);
} catch (const IoError&) {
  return false;
}

std::string RunDirectory::reserve(const std::string& runs_dir, const std::string& name) {
  check_name(name);
  base::make_directories(runs_dir);
  for (uint64_t n = largest_number(runs_dir, name) + 1;; ++n) {
    std::string path = fmt::format("{}/{}-{}", runs_dir, name, n);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) base::throw_io_error("create run folder", path, errno);
  }
}

RunDirectory RunDirectory::create(const std::string& runs_dir, const std::string& name) {
  const std::string path = reserve(runs_dir, name);
  RunDirectory run(path, lock_run(path), true);
  base::make_directories(run.checkpoints());
  return run;
}

RunDirectory RunDirectory::create_at(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  if (!parent.empty()) base::make_directories(parent);
  const bool made = ::mkdir(path.c_str(), 0777) == 0;
  if (!made) {
    std::error_code error;
    if (errno != EEXIST) base::throw_io_error("create run folder", path, errno);
    const bool empty = fs::is_directory(path, error) && fs::is_empty(path, error);
    if (!empty) {
      throw UsageError(
          fmt::format("run folder {} already exists; use --resume {} to continue the run in it", path, path));
    }
  }
  RunDirectory run(path, lock_run(path), made);
  base::make_directories(run.checkpoints());
  return run;
}

RunDirectory RunDirectory::create_for(const settings::Settings& settings, const std::string& model_name) {
  if (!settings.run_dir.empty()) return create_at(settings.run_dir);
  return create(settings.runs_dir, settings.name.empty() ? model_name : settings.name);
}

std::string find_run(const std::string& run, const std::string& runs_dir) {
  const std::string named = runs_dir + "/" + run;
  if (is_run(run)) return run;
  if (is_run(named)) return named;
  std::error_code ignored;
  const bool folder = fs::is_directory(run, ignored);
  throw UsageError(
      fmt::format("no run '{}': {}{}", run,
                  folder ? "the folder has no config.yaml" : "neither that folder nor " + named + " exists",
                  run_hint(run, runs_dir)));
}

RunDirectory RunDirectory::share(const std::string& path, const std::string& role) {
  base::make_directories(path);
  // The previous process may still be exiting.
  constexpr std::chrono::seconds kPatience{10};
  base::LockFile lock = base::LockFile::lock(fmt::format("{}/.{}.lock", path, role), kPatience);
  return {path, std::move(lock)};
}

RunDirectory RunDirectory::open(const std::string& run, const std::string& runs_dir) {
  const std::string path = find_run(run, runs_dir);
  return {path, lock_run(path)};
}

void remove_run(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).lexically_normal();
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).string();
  if (fs::is_symlink(name, error)) throw UsageError(path + " is a link; delete the run that it leads to");
  const std::vector<base::LockFile> locks = lock_all(name);
  // Without its config.yaml the folder is no run any more, even if removing the rest fails half-way.
  fs::remove(name + "/config.yaml", error);
  if (error) base::throw_io_error("remove", name + "/config.yaml", error.value());
  fs::remove_all(name, error);
  if (error) base::throw_io_error("remove", name, error.value());
}

}  // namespace lockstep::run
