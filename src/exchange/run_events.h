// What a group tells the process that keeps the run's files. The session implements it, exchanges call it; borrowed by
// them for as long as they live. All calls come on the training thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::exchange {

class RunEvents {
 public:
  virtual ~RunEvents() = default;

  /// The leader: training begins at this step. What was written for later steps does not count.
  virtual void training_begins(uint64_t step, uint64_t examples) = 0;
  /// A former leader: its group gave way to another one, which trains on from this step.
  virtual void went_back(uint64_t step) = 0;
  /// The leader: its group breaks up, and another member may lead the next one.
  virtual void group_breaks_up() = 0;
  /// The leader: the best bucket size was found.
  virtual void bucket_size_found(size_t bytes) = 0;
  /// A member that ends without a group asks: true where the run's folder has nothing of a later step.
  [[nodiscard]] virtual bool is_newest(uint64_t step) const = 0;

 protected:
  RunEvents() = default;
  RunEvents(const RunEvents&) = default;
  RunEvents& operator=(const RunEvents&) = default;
};

}  // namespace lockstep::exchange
