// Finds the bucket size that makes steps fastest, in the first steps of a training: every size that makes a difference
// gets some steps, in two rounds so that a slow moment does not decide, and the one with the lowest median of a round
// stays. It decides by the numbers it is given alone: members that give it the same ones decide alike. Plain values.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::allreduce {

class Autotune {
 public:
  /// For a gradient buffer of so many bytes. The default is kept unless another size is better by more than 1 %.
  Autotune(size_t count_bytes, size_t default_bytes);

  /// To be used in the next step.
  [[nodiscard]] size_t bucket_bytes() const { return candidates_[current_].bytes; }
  [[nodiscard]] bool done() const { return done_; }
  /// A step was made with bucket_bytes(), and took the group so long.
  void step(double group_step_seconds);
  /// Steps that it takes in all.
  [[nodiscard]] size_t steps() const;

 private:
  struct Candidate {
    size_t bytes = 0;
    std::vector<double> seconds;  ///< of this round
    double median = 0;            ///< of the better round
  };

  void close_round(Candidate& candidate) const;
  void decide();

  std::vector<Candidate> candidates_;  ///< the default first
  size_t current_ = 0;
  int round_ = 0;
  int made_ = 0;  ///< steps with the current one in this round
  bool done_ = false;
};

}  // namespace lockstep::allreduce
