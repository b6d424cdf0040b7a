// The Loader makes batches of float32 from a split, ahead of need, on one background thread.
//
// It borrows the examples, which must outlive it and must not change. All memory is allocated by the constructor
// and, where it must be, for a new plan; `next` hands out pointers into a ring of chunks (many small batches or one
// large one per chunk), so that synchronisation is paid per chunk and nothing is copied or allocated per batch. One
// thread, the consumer, calls the methods.
//
// The stream is a Plan's (plan.h): this member's rounds of what is left of the data, each pass in its own order
// (order.h); a batch never spans two passes. Without steps_per_epoch an epoch is one pass, and ends with this member's
// last round of it, which may be empty; with it an epoch is that many batches of this member, over passes and plans.
// The stream ends after `repeat` passes; for a trainer that stops by itself, repeat = 0.
#pragma once

#include <cstdint>
#include <memory>

#include "base/tracer.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/pixel_scaling.h"
#include "data/plan.h"

namespace lockstep::data {

struct Batch {
  const float* images = nullptr;    ///< count x channels x height x width, 64-byte aligned
  const int32_t* labels = nullptr;  ///< count; nullptr when the examples have none
  int64_t count = 0;                ///< 0 is possible for a member's part of the last round of a pass
  int64_t global_count = 0;         ///< examples of the whole round, over all members
  int64_t first_row = 0;            ///< row of images[0] in the round, to key randomness by
  int64_t round = 0;                ///< of the plan
  int64_t pass = 0;
  int64_t epoch = 0;
  bool last_in_epoch = false;
};

struct LoaderOptions {
  int64_t batch = 32;  ///< per member
  Shuffle shuffle{};
  uint64_t seed = 1;
  Shard shard{};
  int64_t steps_per_epoch = 0;           ///< 0: an epoch is one pass
  int64_t repeat = 1;                    ///< passes in the stream, from the very first; 0: for ever
  float scale = 1.0F / 255.0F;           ///< of byte images; floats are taken as they are
  const PixelScaling* pixels = nullptr;  ///< then applied to all images; borrowed while the Loader is made
  int depth = 3;                         ///< batches kept ready, at least; small ones get more
  Remainder start{};                     ///< from another Loader's remainder(): goes on with exactly the same batches
  int64_t rounds_done = 0;               ///< before that, for epochs of a fixed length
  bool shrink_batch = false;             ///< a batch larger than the data is cut to it instead of a UsageError
  base::TraceTrack* trace = nullptr;     ///< of the background thread; may be absent

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

  /// Starts the plan anew from its first round; allocates nothing.
  void restart();

  /// Goes over to another plan for the same examples. Batches made ahead are dropped. Memory is allocated for the plan,
  /// and for its batches where they are larger than any before.
  void restart(Plan plan);

  [[nodiscard]] const Plan& plan() const;

  /// What is left after the batches that `next` has given. For plans of one member: what others have done is not known
  /// here.
  [[nodiscard]] Remainder remainder() const;

  /// Time that `next` spent waiting for data so far.
  [[nodiscard]] double seconds_waited() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
