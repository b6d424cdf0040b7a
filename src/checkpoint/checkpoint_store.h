// The checkpoints of one run: a folder of `step-000001200.ckpt` files. Saving first makes the new one durable and only
// then deletes the others, except the newest `keep` and the best. For one thread; one process per run (its lock).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lockstep::checkpoint {

class CheckpointStore {
 public:
  struct File {
    uint64_t step = 0;
    std::string path;
  };

  explicit CheckpointStore(std::string folder, int64_t keep = 3) : folder_(std::move(folder)), keep_(keep) {}

  /// Writes the checkpoint of the header's step and deletes old ones; returns the file and its size. Throws IoError.
  /// `may_keep` is asked before the file is renamed into place; if it says no, nothing is kept and `bytes` is 0.
  struct Saved {
    std::string path;
    size_t bytes = 0;
  };
  Saved save(const CheckpointHeader& header, std::span<const std::span<const float>> arrays,
             const std::function<bool()>& may_keep = {});

  /// Lists all checkpoints, oldest first; ignores other files.
  [[nodiscard]] std::vector<File> list() const;

  /// Reads the newest checkpoint. Throws DataError if it is damaged, naming the reason, an intact older one and how to
  /// use it; DataError too if there is none.
  [[nodiscard]] Checkpoint load_newest(std::string& path) const;

  /// Reads a checkpoint by name: "newest" (also when empty), "best", a path, or a file of this folder. Throws
  /// UsageError if there is no such checkpoint, otherwise as load_newest.
  [[nodiscard]] Checkpoint load(const std::string& name, std::string& path) const;

  /// Returns true if there is a checkpoint of that step.
  [[nodiscard]] bool has(uint64_t step) const;

  /// Renames checkpoints newer than `step` (to `.abandoned`), because the run resumes from an older one.
  void abandon_after(uint64_t step) const;

  /// Removes leftovers of a process that died while saving.
  void remove_leftovers() const;

  [[nodiscard]] std::string path_of(uint64_t step) const;

 private:
  [[nodiscard]] Checkpoint read_newest(std::vector<File>& files) const;
  [[nodiscard]] Checkpoint load_best(std::string& path) const;
  void thin_out(const TrainingState& state) const;

  std::string folder_;
  int64_t keep_;
};

/// Returns the step of the newest checkpoint of a run; none where the folder has none or cannot be read.
std::optional<uint64_t> newest_step(const std::string& run_dir);

}  // namespace lockstep::checkpoint
