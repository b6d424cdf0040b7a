// The cores that a thread, and everything it starts, may run on. The kernel wakes threads that meet every few
// microseconds close to each other, so two may share a core for long while another is idle. Threads with cores of their
// own avoid that.
#pragma once

#include <vector>

namespace lockstep::base {

/// Returns share `part` of `parts` of the cores that the calling thread may run on. Sizes differ by at most one.
std::vector<int> share_of_cores(int part, int parts);

/// Restricts the constructing thread, its team (base/parallel.h), and the threads and processes it starts meanwhile, to
/// the given cores. Does nothing for an empty list, or if the system refuses. Destroy it on the same thread.
class KeptToCores {
 public:
  explicit KeptToCores(const std::vector<int>& cores);
  ~KeptToCores();
  KeptToCores(const KeptToCores&) = delete;
  KeptToCores& operator=(const KeptToCores&) = delete;

 private:
  std::vector<int> before_;  ///< empty: nothing to undo
};

}  // namespace lockstep::base
