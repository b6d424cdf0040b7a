// One parameter server's part of the parameters: versioned buffers, the optimizer, and durability.
//
// A ParameterShard serves ranges of the whole parameter buffer (schedule/placement.h), which lie one after the other in
// its own buffers. Every update reads version v and writes version v + 1, parameters and optimizer state alike, into a
// buffer that nobody holds. Then it commits: one store makes v + 1 the current version together with its Ledger bytes.
// So a version that is being sent (a View) never changes, and a process killed at any moment resumes from the last
// committed version. Buffers are reference-counted by their Views and reused; another one is made when all are held.
//
// With durability `process` and `machine` the buffers lie in a mapped file (state_file.h). A `process` file from before
// the last reboot is refused: nothing tells which of its pages had reached the disk.
//
// Threads: one thread at a time (the caller's lock) calls `initialise`, `sum_of_squares` and `apply`, and not while
// others are in `apply_in_place`, `commit_in_place` or `commit_ledger`. Any thread calls `current`, `version`,
// `staging` and uses Views. Views may outlive the ParameterShard.
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
  machine,    ///< the same, synced before an update is acknowledged: survives a power cut
  checkpoint  ///< memory only
};

/// Holds a committed version: its memory does not change while the View lives.
class View {
 public:
  uint64_t version = 0;
  std::span<const float> parameters;          ///< parameters of the shard, in the order of its ranges
  std::vector<std::span<const float>> slots;  ///< optimizer state, in the optimizer's order
  std::span<const std::byte> ledger;          ///< bytes committed with the version; they do not change either
  std::shared_ptr<const void> hold;
};

struct ParameterShardOptions {
  optim::OptimizerSettings optimizer;
  size_t parameters = 0;  ///< number of parameters in this shard
  Durability durability = Durability::process;
  std::string file;            ///< path of the mapped state; unused with `checkpoint`
  uint64_t identity = 0;       ///< digest of run, placement and optimizer; a file with another one is refused
  size_t ledger_bytes = 4096;  ///< largest ledger of a commit
  int threads = 1;
};

/// One contributor's gradient, as long as the shard.
struct Contribution {
  std::span<const float> gradient;
  float weight = 1;  ///< weight relative to the first contributor
};

class ParameterShard {
 public:
  /// Reserves all memory and disk it needs, so that a full disk is found here: IoError names the file and the bytes.
  /// Resumes an existing file of the same identity from its newest committed version. Throws DataError for a damaged
  /// file or another identity.
  explicit ParameterShard(const ParameterShardOptions& options);
  ~ParameterShard();
  ParameterShard(const ParameterShard&) = delete;
  ParameterShard& operator=(const ParameterShard&) = delete;

  /// Returns true if there is a version: after `initialise`, or from the file.
  [[nodiscard]] bool initialised() const;
  /// Commits `version` with these values and replaces any earlier state; slots may be empty (zeros).
  void initialise(uint64_t version, std::span<const float> parameters, std::span<const std::span<const float>> slots,
                  std::span<const std::byte> ledger);

  /// Holds the current version. Throws UsageError if there is none.
  [[nodiscard]] View current() const;
  /// Returns the number of the current version without holding it.
  [[nodiscard]] uint64_t version() const;
  /// Returns a buffer for a contributor's gradient, as long as the shard, 64-byte aligned; the same key gives the same
  /// buffer.
  std::span<float> staging(size_t key);

  /// Returns false if all buffers are held by Views and no other can be made: `apply` and `initialise` would throw
  /// IoError. For the thread that calls those.
  [[nodiscard]] bool has_room();
  /// Sums the contributions in order as the trainer's accumulation does ((sum + weight * gradient) * scale at the last,
  /// where scale is `mean_scale`), applies the optimizer, commits version + 1 with `ledger` and returns it. A single
  /// contribution is applied in place, without scale or weight.
  View apply(std::span<const Contribution> contributions, float mean_scale, const optim::Update& update,
             std::span<const std::byte> ledger);
  /// Returns the sum of squares of the aggregated gradient, for clipping. A following `apply` with the same
  /// contributions uses the sum made here, so their memory must not change in between.
  double sum_of_squares(std::span<const Contribution> contributions, float mean_scale);
  /// Lock-free: commits `version` with the current values, which `apply_in_place` changes next. Any thread.
  void commit_in_place(uint64_t version, std::span<const std::byte> ledger);
  /// Lock-free: changes the current version in place, including Views of it. Several threads may call it at once and
  /// may overwrite each other's changes of single elements. A process killed in the middle keeps part of the update,
  /// which counts.
  void apply_in_place(std::span<const float> gradient, const optim::Update& update);
  /// Commits another ledger with the current version, for changes that no version follows. Any thread.
  void commit_ledger(std::span<const std::byte> ledger);

  /// Seconds that making the latest version of `apply` durable took; for the thread that called it.
  [[nodiscard]] double commit_seconds() const;
  [[nodiscard]] const std::vector<std::string>& slot_names() const;
  /// Extra bytes that updates wrote to memory so far, beyond the optimizer's own: sums made for clipping. (Sums for
  /// `apply` alone stay in the cache, a block at a time.)
  [[nodiscard]] uint64_t bytes_copied() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::ps
