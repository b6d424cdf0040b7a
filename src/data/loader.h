// The Loader makes batches of float32 from a split, ahead of need, on one background thread.
//
// It borrows the examples, which must outlive it and must not change. The constructor allocates all memory; a new plan
// may allocate more. `next` returns pointers into a ring of chunks (many small batches or one large one per chunk), so
// synchronisation costs are per chunk, and nothing is copied or allocated per batch. One thread, the consumer, calls
// the methods.
//
// The stream is a Plan's (plan.h): this member's rounds of the data that is left, each pass in its own order (order.h).
// A batch never spans two passes. Without steps_per_epoch an epoch is one pass and ends with this member's last round
// of it, which may be empty. With it an epoch is that many batches of this member, over passes and plans. The stream
// ends after `repeat` passes; repeat = 0 is for a trainer that stops by itself.
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
  const int32_t* labels = nullptr;  ///< count; nullptr if the examples have none
  int64_t count = 0;                ///< may be 0 for a member's part of the last round of a pass
  int64_t global_count = 0;         ///< examples of the whole round, over all members
  int64_t first_row = 0;            ///< row of images[0] in the round; part of the key of random numbers
  int64_t round = 0;                ///< round of the plan
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
  int64_t repeat = 1;                    ///< passes in the stream, counted from the start of training; 0: endless
  float scale = 1.0F / 255.0F;           ///< for byte images; floats are not scaled
  const PixelScaling* pixels = nullptr;  ///< then applied to all images; borrowed during construction only
  int depth = 3;                         ///< least number of batches kept ready; small batches get more
  Remainder start{};                     ///< another Loader's remainder(): continues with exactly the same batches
  int64_t rounds_done = 0;               ///< rounds before `start`, for epochs of a fixed length
  bool shrink_batch = false;          ///< true: a batch larger than the data is cut to its size instead of a UsageError
  base::TraceTrack* trace = nullptr;  ///< track of the background thread; may be null

  /// Returns options for evaluation: in order, once, unshuffled.
  static LoaderOptions evaluation(int64_t batch);
};

class Loader {
 public:
  Loader(const Examples& examples, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// Returns the next batch, valid until the next call of `next`, `restart` or the destructor; nullptr at the end of
  /// the stream. Throws errors of the background thread.
  const Batch* next();

  /// Restarts the plan from its first round; allocates nothing.
  void restart();

  /// Switches to another plan for the same examples. Drops batches made ahead. Allocates memory for the plan, and for
  /// its batches if they are larger than any before.
  void restart(Plan plan);

  [[nodiscard]] const Plan& plan() const;

  /// Returns the data left after the batches that `next` has returned. For plans of one member only: the progress of
  /// other members is not known here.
  [[nodiscard]] Remainder remainder() const;

  /// Returns the time that `next` has spent waiting for data.
  [[nodiscard]] double seconds_waited() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
