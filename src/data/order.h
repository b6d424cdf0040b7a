// In which order a pass goes through the examples, and which of them a worker takes.
//
// The order of pass p is a permutation that depends on (count, shuffle, seed, p) alone, so every worker computes the
// same one. With N workers and batch B, global batch b is the N*B consecutive positions from b*N*B on, and worker i
// takes slice i of them. The last global batch of a pass is short when the count is not a multiple; it is split as
// evenly as possible, earlier workers taking one more, and some may get nothing. So over all workers every example is
// seen exactly once per pass, and what a global batch holds does not depend on how it is cut.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"

namespace lockstep::data {

struct Shuffle {
  enum class Kind { kAll, kBuffer, kNone };

  Kind kind = Kind::kAll;
  int64_t buffer = 0;  ///< kBuffer: as tf.data's shuffle(buffer)

  static Shuffle all() { return {}; }
  static Shuffle none() { return {Kind::kNone, 0}; }
  static Shuffle of_buffer(int64_t size) { return {Kind::kBuffer, size}; }

  /// "all", "none" or a buffer size; UsageError otherwise.
  static Shuffle parse(const std::string& text);
};

/// The permutation of one pass at a time. Owns its memory and allocates only when constructed; for one thread.
class EpochOrder {
 public:
  EpochOrder(int64_t count, Shuffle shuffle, uint64_t seed);

  /// The indices of pass `pass` in the order they are seen; valid until the next call.
  std::span<const uint32_t> pass(int64_t pass);

 private:
  void shuffle_all(int64_t pass);
  void shuffle_buffer(int64_t pass);

  Shuffle shuffle_;
  uint64_t seed_;
  int64_t made_ = -1;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> window_;
};

/// Worker `index` of `count`.
struct Shard {
  int index = 0;
  int count = 1;
};

/// Which positions of a pass belong to which batch of which worker.
class BatchPlan {
 public:
  /// UsageError when batch or shard make no sense, or the global batch is larger than `examples`.
  BatchPlan(int64_t examples, int64_t batch, Shard shard = {});

  /// Global batches in a pass, the short last one included.
  [[nodiscard]] int64_t batches() const { return (examples_ + global_batch() - 1) / global_batch(); }
  [[nodiscard]] int64_t global_batch() const { return batch_ * shard_.count; }

  /// All workers' positions of batch `index`, and this worker's.
  [[nodiscard]] base::Range global_range(int64_t index) const;
  [[nodiscard]] base::Range range(int64_t index) const;

 private:
  int64_t examples_;
  int64_t batch_;
  Shard shard_;
};

}  // namespace lockstep::data
