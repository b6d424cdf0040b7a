// The bucket size of a group: the configured one, or the one that autotune finds in the first steps and all keep from
// then on. It depends only on numbers that all members know, so all decide alike. Plain values.
#pragma once

#include <cstddef>
#include <optional>

#include "allreduce/autotune.h"

namespace lockstep::allreduce {

class BucketTuner {
 public:
  /// `searches`: look for a better size than `default_bytes`, for `gradient_bytes` of gradients
  BucketTuner(size_t gradient_bytes, size_t default_bytes, bool searches)
      : gradient_bytes_(gradient_bytes), default_bytes_(default_bytes), settled_(!searches) {}

  /// Begins a group and returns the size for its next step. `known`: the size that its state was trained with; 0: none
  /// found yet.
  size_t begin(size_t known) {
    settled_ = known > 0;
    autotune_.reset();
    if (settled_) return known;
    autotune_.emplace(gradient_bytes_, default_bytes_);
    return autotune_->bucket_bytes();
  }
  /// True if the size does not change any more.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] bool searching() const { return autotune_.has_value(); }
  /// While searching: records a step and the group's time for it. Returns the size for the next step.
  size_t step(double group_step_seconds) {
    autotune_->step(group_step_seconds);
    const size_t bytes = autotune_->bucket_bytes();
    settled_ = autotune_->done();
    if (settled_) autotune_.reset();
    return bytes;
  }

 private:
  size_t gradient_bytes_;
  size_t default_bytes_;
  bool settled_;
  std::optional<Autotune> autotune_;
};

}  // namespace lockstep::allreduce
