// The Loader makes batches of float32 from a split, ahead of need, on one background thread.
//
// It borrows the examples, which must outlive it and must not change. All memory is allocated by the constructor;
// `next` hands out pointers into a ring of chunks (many small batches or one large one per chunk), so that
// synchronisation is paid per chunk and nothing is copied or allocated per batch. One thread, the consumer, calls the
// methods.
//
// The stream: passes over the data, each in its own order (order.h), cut into batches that never span two passes. With
// steps_per_epoch an epoch is that many batches of the stream, which goes on where it stopped; without, an epoch is one
// pass. The stream ends after `repeat` passes; for a trainer that stops by itself, repeat = 0.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "data/order.h"
#include "data/pixel_scaling.h"

namespace lockstep::data {

struct Batch {
  const float* images = nullptr;    ///< count x channels x height x width, 64-byte aligned
  const int32_t* labels = nullptr;  ///< count; nullptr when the examples have none
  int64_t count = 0;                ///< 0 is possible for a shard's part of the last batch of a pass
  int64_t global_count = 0;         ///< examples of the whole global batch, over all shards
  int64_t first_row = 0;            ///< row of images[0] in the global batch, to key randomness by
  int64_t pass = 0;
  int64_t index_in_pass = 0;
  int64_t epoch = 0;
  int64_t index_in_epoch = 0;
  bool last_in_epoch = false;
};

/// Where in the stream a Loader is: the batch that `next` gives next.
struct Position {
  int64_t pass = 0;
  int64_t batch = 0;

  bool operator==(const Position&) const = default;
};

struct LoaderOptions {
  int64_t batch = 32;  ///< per worker
  Shuffle shuffle{};
  uint64_t seed = 1;
  Shard shard{};
  int64_t steps_per_epoch = 0;           ///< 0: an epoch is one pass
  int64_t repeat = 1;                    ///< passes in the stream; 0: for ever
  float scale = 1.0F / 255.0F;           ///< of byte images; floats are taken as they are
  const PixelScaling* pixels = nullptr;  ///< then applied to all images; borrowed while the Loader is made
  int depth = 3;                         ///< batches kept ready, at least; small ones get more
  Position start{};                      ///< from another Loader's position(): goes on with exactly the same batches
  bool shrink_batch = false;             ///< a batch larger than the data is cut to it instead of a UsageError

  /// In order, once, unshuffled: for evaluation.
  static LoaderOptions evaluation(int64_t batch);
};

class Loader {
 public:
  Loader(const Examples& examples, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// The next batch, valid until the next call of `next`, `restart` or the destructor; nullptr when the stream has
  /// ended. What went wrong on the background thread is thrown here.
  const Batch* next();

  /// Goes to `position` of the stream, which then starts anew from there; allocates nothing.
  void restart(Position position = {});

  /// Of the batch that `next` gives next.
  [[nodiscard]] Position position() const;

  /// Global batches in a pass, and in an epoch.
  [[nodiscard]] int64_t batches_per_pass() const;
  [[nodiscard]] int64_t batches_per_epoch() const;

  /// Batches in the whole stream from its very start; -1: for ever.
  [[nodiscard]] int64_t batches_in_stream() const;

  /// Time that `next` spent waiting for data so far.
  [[nodiscard]] double seconds_waited() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
