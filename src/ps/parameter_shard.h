// One parameter server's part of the parameters: versioned buffers, the optimizer, and durability.
//
// A ParameterShard serves ranges of the whole parameter buffer (placement.h), which lie one after the other in its own
// buffers. Every update reads version v and writes version v + 1 into a buffer that nobody holds, parameters and
// optimizer state alike, then commits: one store that makes v + 1 the current version together with its Ledger bytes.
// So a version that is being sent (a View) never changes underneath, and a process killed at any moment comes back with
// the last committed version. Buffers are reference-counted by their Views and reused; another one is made when all are
// held.
//
// In durability `process` and `machine` the buffers lie in a mapped file (state_file.h). A file of `process` from
// before the machine was last started is refused: nothing says which of its pages had reached the disk.
//
// Threads: `initialise`, `sum_of_squares` and `apply` by one thread at a time (the caller's lock), and not while others
// are in `apply_in_place` or `commit_ledger`; `current`, `version`, `staging` and Views from any thread. Views may
// outlive the ParameterShard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "program/program.h"

namespace lockstep::ps {

enum class Durability : uint8_t {
  process,    ///< in a mapped file: survives kill -9 of the process
  machine,    ///< the same, synced before an update is acknowledged: survives the machine
  checkpoint  ///< memory only
};

/// A committed version, held: its memory does not change while the View lives.
class View {
 public:
  uint64_t version = 0;
  std::span<const float> parameters;          ///< of the shard, in the order of its ranges
  std::vector<std::span<const float>> slots;  ///< optimizer state, in the optimizer's order
  std::span<const std::byte> ledger;          ///< what was committed with it; not changed underneath either
  std::shared_ptr<const void> hold;
};

struct ParameterShardOptions {
  optim::OptimizerSettings optimizer;
  size_t parameters = 0;  ///< of this shard
  Durability durability = Durability::process;
  std::string file;            ///< of the mapped state; not for `checkpoint`
  uint64_t identity = 0;       ///< of run, placement and optimizer: a file with another one is refused
  size_t ledger_bytes = 4096;  ///< the most that a commit may carry
  int threads = 1;
};

/// One contributor's gradient, as long as the shard.
struct Contribution {
  std::span<const float> gradient;
  float weight = 1;  ///< relative to the first contributor
};

class ParameterShard {
 public:
  /// Reserves all it needs, so that a full disk is found here: IoError names the file and the bytes. An existing file
  /// of the same identity is taken over with its newest committed version; a damaged or other one is a DataError.
  explicit ParameterShard(const ParameterShardOptions& options);
  ~ParameterShard();
  ParameterShard(const ParameterShard&) = delete;
  ParameterShard& operator=(const ParameterShard&) = delete;

  /// Whether there is a version at all: after `initialise`, or from the file.
  [[nodiscard]] bool initialised() const;
  /// Commits `version` with these values, whatever was there before; slots may be empty (zeros).
  void initialise(uint64_t version, std::span<const float> parameters, std::span<const std::span<const float>> slots,
                  std::span<const std::byte> ledger);

  /// UsageError when there is none.
  [[nodiscard]] View current() const;
  /// Of `current`, without holding it.
  [[nodiscard]] uint64_t version() const;
  /// A buffer for a contributor's gradient, as long as the shard, 64-byte aligned; reused by its key.
  std::span<float> staging(size_t key);

  /// Sums the contributions in order as the trainer's accumulation does ((sum + weight * gradient) * scale at the last,
  /// where scale is `mean_scale`), applies the optimizer and commits version + 1 with `ledger`. One contribution is
  /// applied where it lies, without scale or weight. Gives the new version. Where no buffer is free and there is no
  /// room for another, waits until a View ends: the caller should not keep Views of its own meanwhile.
  View apply(std::span<const Contribution> contributions, float mean_scale, const optim::Update& update,
             std::span<const std::byte> ledger);
  /// The aggregated gradient's sum of squares, for clipping. `apply` with the same contributions then uses the sum made
  /// here, so their memory must not change in between.
  double sum_of_squares(std::span<const Contribution> contributions, float mean_scale);
  /// Lock-free: changes the current version in place, Views of it included; several threads at once, who may overwrite
  /// each other's changes of single elements. Counts as a version, which is given. A process killed in the middle
  /// leaves a part of this update without counting it; if it is sent again, that part is applied twice. What was
  /// counted is kept.
  uint64_t apply_in_place(std::span<const float> gradient, const optim::Update& update);
  /// Commits another ledger with the current version: for `apply_in_place`, and for what no version follows. Any
  /// thread.
  void commit_ledger(std::span<const std::byte> ledger);

  /// What making the latest version of `apply` durable took; for the thread that called it.
  [[nodiscard]] double commit_seconds() const;
  [[nodiscard]] const std::vector<std::string>& slot_names() const;
  /// Bytes that updates wrote to memory besides what the optimizer must, so far: sums made for clipping. (Sums for
  /// `apply` alone stay in the cache, a block at a time.)
  [[nodiscard]] uint64_t bytes_copied() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::ps
