// The cores that a thread, and whatever it starts, may run on. Threads that meet every few microseconds are woken next
// to each other, and two may share a core for long while another one is idle; who has cores of its own is spared that.
#pragma once

#include <vector>

namespace lockstep::base {

/// Share `part` of `parts` of the cores that the calling thread may run on; sizes differ by at most one.
std::vector<int> share_of_cores(int part, int parts);

/// Keeps the thread that makes it, and the threads and processes that it starts meanwhile, to some cores. None: it does
/// nothing; nor does it where the system refuses. To be destroyed on the same thread.
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
