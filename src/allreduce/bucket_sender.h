// Adds up a group's gradients in buckets while the backward pass still runs: scales each bucket by this member's
// weight, gives it the form in which it is sent (float32, 16 bits or the largest elements alone) and posts it to the
// communicator, in the same order on every member. The last bucket carries the notes. Borrows the parameter store, the
// trace and the group's collective. For the training thread; operations run on the communicator's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/buckets.h"
#include "allreduce/communicator.h"
#include "allreduce/compression.h"
#include "allreduce/notes.h"
#include "base/tracer.h"
#include "collective/collective.h"
#include "program/parameters.h"

namespace lockstep::allreduce {

struct BucketSenderOptions {
  collective::Element wire = collective::Element::float32;
  double top_k = 0;  ///< share of the gradients that is sent; 0: all
  size_t bucket_bytes = 0;
  base::TraceTrack* trace = nullptr;  ///< of the training thread; may be absent
};

class BucketSender {
 public:
  BucketSender(program::ParameterStore& parameters, const BucketSenderOptions& options);

  /// From now on with this group, with buckets of so many bytes. Forgets what top-k held back.
  void use(collective::Collective& group, size_t bucket_bytes);
  /// Waits for all that was posted, and forgets its failure. The group may go then, until `use`.
  void leave_group();
  /// Cuts the gradients anew, and makes room for what is sent.
  void cut(size_t bucket_bytes);
  [[nodiscard]] size_t bucket_bytes() const { return bucket_bytes_; }
  [[nodiscard]] size_t buckets() const { return buckets_.size(); }

  /// A new step, whose gradients count by `weight`.
  void begin(float weight, bool traced);
  /// The gradients of `range` are final.
  void ready(program::ParameterRange range);
  /// Sends what is left of the step, the note with it, and reads what all have said.
  base::Status complete(const Note& note, Notes& notes);

  /// Spent in operations of the group since the last call of this.
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
  Buckets buckets_;
  size_t posted_ = 0;        ///< buckets of the step
  float weight_ = 1;         ///< of this member's gradients
  std::vector<float> last_;  ///< the last bucket, behind the notes
  std::vector<uint16_t> halves_;
  std::optional<TopK> top_k_;
  std::vector<SparseElement> sparse_;     ///< of this member,
  std::vector<SparseElement> everyones_;  ///< and of all
  bool traced_ = false;
  base::TraceTrack* operations_ = nullptr;  ///< on a thread of their own
  const base::TraceLabel* label_ = nullptr;
  Communicator communicator_;  ///< after all that its operations use
};

}  // namespace lockstep::allreduce
