// In which order a pass goes through the examples.
//
// The order of pass p is a permutation that depends on (count, shuffle, seed, p) alone, so every worker computes the
// same one. Which of its positions a worker takes is a Plan's (plan.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

}  // namespace lockstep::data
