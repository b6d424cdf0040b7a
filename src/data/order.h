// The order in which a pass visits the examples.
//
// The order of pass p is a permutation that depends only on (count, shuffle, seed, p), so every worker computes the
// same one. A Plan (plan.h) decides which of its positions a worker takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct Shuffle {
  enum class Kind { kAll, kBuffer, kNone };

  Kind kind = Kind::kAll;
  int64_t buffer = 0;  ///< for kBuffer: like tf.data's shuffle(buffer)

  static Shuffle all() { return {}; }
  static Shuffle none() { return {Kind::kNone, 0}; }
  static Shuffle of_buffer(int64_t size) { return {Kind::kBuffer, size}; }

  /// Parses "all", "none" or a buffer size; throws UsageError otherwise.
  static Shuffle parse(const std::string& text);
};

/// The permutation of one pass at a time. Owns its memory and allocates only when constructed; for one thread.
class EpochOrder {
 public:
  EpochOrder(int64_t count, Shuffle shuffle, uint64_t seed);

  /// Returns the indices of pass `pass` in the order they are visited; valid until the next call.
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

}  // namespace lockstep::data
