// The checkpoints of one run: a folder of `step-000001200.ckpt` files. Saving writes the new one durably first and only
// then deletes what is neither among the newest `keep` nor the best. For one thread; one process per run (its lock).
#pragma once

#include <cstdint>
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

  /// Writes the header's step and thins out the rest; gives the file and its size. Throws IoError.
  struct Saved {
    std::string path;
    size_t bytes = 0;
  };
  Saved save(const CheckpointHeader& header, std::span<const std::span<const float>> arrays);

  /// All checkpoints here, oldest first; other files are not looked at.
  [[nodiscard]] std::vector<File> list() const;

  /// Reads the newest. A damaged one is a DataError that says why and which older one is intact and how to use it;
  /// none at all is a DataError too.
  [[nodiscard]] Checkpoint load_newest(std::string& path) const;

  /// Reads the one of that name: "newest" (also when empty), "best", a path, or a file of this folder. Throws
  /// UsageError where there is no such one, else as load_newest.
  [[nodiscard]] Checkpoint load(const std::string& name, std::string& path) const;

  /// Whether the checkpoint of that step is here.
  [[nodiscard]] bool has(uint64_t step) const;

  /// Gives checkpoints newer than `step` another name (`.abandoned`): a run that goes on from an older one.
  void abandon_after(uint64_t step) const;

  /// Removes what a process that died while saving left behind.
  void remove_leftovers() const;

  [[nodiscard]] std::string path_of(uint64_t step) const;

 private:
  [[nodiscard]] Checkpoint read_newest(std::vector<File>& files) const;
  [[nodiscard]] Checkpoint load_best(std::string& path) const;
  void thin_out(const TrainingState& state) const;

  std::string folder_;
  int64_t keep_;
};

}  // namespace lockstep::checkpoint
