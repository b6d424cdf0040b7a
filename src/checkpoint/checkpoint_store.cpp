#include "checkpoint/checkpoint_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kStem = "step-";
constexpr std::string_view kEnding = ".ckpt";
constexpr int kMostTries = 10;

std::optional<uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStem) || !name.ends_with(kEnding)) return std::nullopt;
  const std::string_view digits = name.substr(kStem.size(), name.size() - kStem.size() - kEnding.size());
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  if (error) base::throw_io_error("read folder", folder, error.value());
  for (const auto& entry : entries) names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

std::string CheckpointStore::path_of(uint64_t step) const {
  return fmt::format("{}/{}{:09}{}", folder_, kStem, step, kEnding);
}

std::vector<CheckpointStore::File> CheckpointStore::list() const {
  std::vector<File> files;
  for (const std::string& name : names_in(folder_)) {
    if (const auto step = step_of(name)) files.push_back({*step, folder_ + "/" + name});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.step < b.step; });
  return files;
}

CheckpointStore::Saved CheckpointStore::save(const CheckpointHeader& header,
                                             std::span<const std::span<const float>> arrays,
                                             const std::function<bool()>& may_keep) {
  const std::string path = path_of(header.state.step);
  const size_t bytes = write_checkpoint(path, header, arrays, may_keep);
  if (bytes == 0) return {path, 0};
  thin_out(header.state);
  return {path, bytes};
}

void CheckpointStore::thin_out(const TrainingState& state) const {
  const std::vector<File> files = list();
  const auto keep = static_cast<size_t>(std::max<int64_t>(keep_, 1));
  for (size_t i = 0; i + keep < files.size(); ++i) {
    if (state.best_checkpoint && files[i].step == state.best_checkpoint->step) continue;
    if (::unlink(files[i].path.c_str()) != 0 && errno != ENOENT) base::throw_io_error("remove", files[i].path, errno);
  }
}

/// Reads the newest checkpoint, and lists all in `files`. A training that writes here may replace it by a newer one
/// meanwhile.
Checkpoint CheckpointStore::read_newest(std::vector<File>& files) const {
  for (int tries = 0;; ++tries) {
    files = list();
    if (files.empty()) throw DataError("no checkpoint in " + folder_);
    try {
      return read_checkpoint(files.back().path);
    } catch (const IoError&) {
      if (tries == kMostTries || has(files.back().step)) throw;
    }
  }
}

Checkpoint CheckpointStore::load_newest(std::string& path) const {
  std::vector<File> files;
  try {
    Checkpoint newest = read_newest(files);
    path = files.back().path;
    return newest;
  } catch (const DataError& error) {
    if (files.empty()) throw;
    path = files.back().path;
    for (size_t i = files.size() - 1; i-- > 0;) {
      try {
        read_checkpoint(files[i].path);
      } catch (const Error&) {
        continue;
      }
      throw DataError(fmt::format("{}; the checkpoint of step {} is intact: use it with --checkpoint {}", error.what(),
                                  files[i].step, files[i].path));
    }
    throw DataError(fmt::format("{}; no older one is intact", error.what()));
  }
}

bool CheckpointStore::has(uint64_t step) const {
  std::error_code ignored;
  return std::filesystem::exists(path_of(step), ignored);
}

Checkpoint CheckpointStore::load_best(std::string& path) const {
  const Checkpoint newest = load_newest(path);
  const std::optional<EvalRecord>& best = newest.header.state.best_checkpoint;
  if (!best) throw UsageError("no checkpoint of this run was evaluated, so none is the best; use the newest");
  path = path_of(best->step);
  if (!has(best->step)) throw UsageError(fmt::format("the best checkpoint, {}, is gone; use the newest", path));
  return read_checkpoint(path);
}

Checkpoint CheckpointStore::load(const std::string& name, std::string& path) const {
  if (name.empty() || name == "newest") return load_newest(path);
  if (name == "best") return load_best(path);
  path = name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) path = folder_ + "/" + name;
  if (!std::filesystem::exists(path, ignored)) {
    throw UsageError(fmt::format("checkpoint: neither {} nor {} exists", name, path));
  }
  return read_checkpoint(path);
}

void CheckpointStore::abandon_after(uint64_t step) const {
  for (const File& file : list()) {
    if (file.step <= step) continue;
    const std::string other = file.path + ".abandoned";
    if (::rename(file.path.c_str(), other.c_str()) != 0) base::throw_io_error("rename", file.path, errno);
  }
}

void CheckpointStore::remove_leftovers() const {
  for (const std::string& name : names_in(folder_)) {
    const bool ours = name.starts_with(kStem) && name.find(std::string(kEnding) + ".tmp-") != std::string::npos;
    if (ours) ::unlink((folder_ + "/" + name).c_str());
  }
}

std::optional<uint64_t> newest_step(const std::string& run_dir) {
  try {
    const auto files = CheckpointStore(run_dir + "/checkpoints").list();
    if (!files.empty()) return files.back().step;
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): a folder that cannot be read shows none
  }
  return std::nullopt;
}

}  // namespace lockstep::checkpoint
