// Sums a group's gradients in buckets while the backward pass still runs. Scales each bucket by this member's weight,
// encodes it (float32, 16 bits, or only the largest elements) and posts it to the communicator, in the same order on
// every member. The last bucket carries the notes. Borrows the parameter store, the trace and the group's collective.
// For the training thread; operations run on the communicator's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/communicator.h"
#include "allreduce/compression.h"
#include "allreduce/notes.h"
#include "base/tracer.h"
#include "collective/collective.h"
#include "program/parameters.h"
#include "schedule/buckets.h"

namespace lockstep::allreduce {

struct BucketSenderOptions {
  collective::Element wire = collective::Element::float32;
  double top_k = 0;  ///< share of the gradients that is sent; 0: all
  size_t bucket_bytes = 0;
  base::TraceTrack* trace = nullptr;  ///< track of the training thread; may be absent
};

class BucketSender {
 public:
  BucketSender(program::ParameterStore& parameters, const BucketSenderOptions& options);

  /// Switches to this group, with buckets of `bucket_bytes`. Forgets the elements that top-k held back.
  void use(collective::Collective& group, size_t bucket_bytes);
  /// Waits for everything posted and forgets its failure. The group may be destroyed then, until `use`.
  void leave_group();
  /// Cuts the gradients into new buckets and allocates the buffers to send.
  void cut(size_t bucket_bytes);
  [[nodiscard]] size_t bucket_bytes() const { return bucket_bytes_; }
  [[nodiscard]] size_t buckets() const { return buckets_.size(); }

  /// Begins a step, whose gradients are scaled by `weight`.
  void begin(float weight, bool traced);
  /// Announces that the gradients of `range` are final.
  void ready(program::ParameterRange range);
  /// Sends the rest of the step with the note, and reads all members' notes.
  base::Status complete(const Note& note, Notes& notes);

  /// Returns the time spent in operations of the group since the last call.
  [[nodiscard]] double take_seconds() { return communicator_.take_seconds(); }

 private:
  [[nodiscard]] bool plain() const { return wire_ == collective::Element::float32 && !top_k_; }
  [[nodiscard]] std::span<float> gradients(program::ParameterRange range) const;
  void post(size_t index);
  base::Status reduce(program::ParameterRange range);
  base::Status reduce_halves(std::span<float> values);
  base::Status reduce_sparse(size_t offset, std::span<float> values);
  base::Status reduce_last();
  void scale(std::span<float> values) const;

  program::ParameterStore& parameters_;
  collective::Element wire_;
  size_t bucket_bytes_;
  collective::Collective* group_ = nullptr;
  schedule::Buckets buckets_;
  size_t posted_ = 0;        ///< buckets of the step already posted
  float weight_ = 1;         ///< weight of this member's gradients
  std::vector<float> last_;  ///< the last bucket, after the notes
  std::vector<uint16_t> halves_;
  std::optional<TopK> top_k_;
  std::vector<SparseElement> sparse_;     ///< this member's elements
  std::vector<SparseElement> everyones_;  ///< all members' elements
  bool traced_ = false;
  base::TraceTrack* operations_ = nullptr;  ///< track of the communicator's thread
  const base::TraceLabel* label_ = nullptr;
  Communicator communicator_;  ///< declared after everything that its operations use
};

}  // namespace lockstep::allreduce
