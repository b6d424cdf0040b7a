// Finds the fastest bucket size in the first steps of a training. Every size that makes a difference gets some steps,
// in two rounds, so that a slow moment does not decide. The size with the lowest median of a round wins. The decision
// depends only on the numbers passed in, so members that pass the same numbers decide alike. Plain values.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::allreduce {

class Autotune {
 public:
  /// For a gradient buffer of `count_bytes` bytes. Keeps the default unless another size is more than 1 % better.
  Autotune(size_t count_bytes, size_t default_bytes);

  /// Size for the next step.
  [[nodiscard]] size_t bucket_bytes() const { return candidates_[current_].bytes; }
  [[nodiscard]] bool done() const { return done_; }
  /// Records a step with bucket_bytes() and the group's time for it.
  void step(double group_step_seconds);
  /// Total number of steps that the search takes.
  [[nodiscard]] size_t steps() const;

 private:
  struct Candidate {
    size_t bytes = 0;
    std::vector<double> seconds;  ///< times of this round
    double median = 0;            ///< median of the better round
  };

  void close_round(Candidate& candidate) const;
  void decide();

  std::vector<Candidate> candidates_;  ///< default first
  size_t current_ = 0;
  int round_ = 0;
  int made_ = 0;  ///< steps with the current size in this round
  bool done_ = false;
};

}  // namespace lockstep::allreduce
