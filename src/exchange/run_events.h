// Events of a group for the process that keeps the run's files. The session implements it. Exchanges borrow it for
// their lifetime and call it on the training thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::exchange {

class RunEvents {
 public:
  virtual ~RunEvents() = default;

  /// Tells the leader that training begins at this step. Records of later steps do not count any more.
  virtual void training_begins(uint64_t step, uint64_t examples) = 0;
  /// Tells every member that a group begins, at this step.
  virtual void group_begins(uint64_t /*number*/, uint64_t /*step*/) {}
  /// Tells the leader that its group breaks up. Another member may lead the next one.
  virtual void group_breaks_up() = 0;
  /// Tells the leader the best bucket size.
  virtual void bucket_size_found(size_t bytes) = 0;
  /// True if the run's folder has nothing of a later step. Asked by a member that ends without a group.
  [[nodiscard]] virtual bool is_newest(uint64_t step) const = 0;

 protected:
  RunEvents() = default;
  RunEvents(const RunEvents&) = default;
  RunEvents& operator=(const RunEvents&) = default;
};

}  // namespace lockstep::exchange
