// Which bucket size a group uses: the one that was set, or the one that autotune finds in the first steps and everyone
// keeps from then on. It decides by what all members have been told alone, so all decide alike. Plain values.
#pragma once

#include <cstddef>
#include <optional>

#include "allreduce/autotune.h"

namespace lockstep::allreduce {

class BucketTuner {
 public:
  /// `searches`: a better size than `default_bytes` is wanted, for gradients of `gradient_bytes`.
  BucketTuner(size_t gradient_bytes, size_t default_bytes, bool searches)
      : gradient_bytes_(gradient_bytes), default_bytes_(default_bytes), settled_(!searches) {}

  /// A group begins. `known`: the size that its state was trained with; 0: none was found yet. Gives the size for the
  /// next step.
  size_t begin(size_t known) {
    settled_ = known > 0;
    autotune_.reset();
    if (settled_) return known;
    autotune_.emplace(gradient_bytes_, default_bytes_);
    return autotune_->bucket_bytes();
  }
  /// The size stays as it is.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] bool searching() const { return autotune_.has_value(); }
  /// While it searches: a step was made, and took the group so long. Gives the size for the next step.
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
