// The threads that share a thread's loops. A Team belongs to the thread that made it, which takes part in every loop.
//
// Between loops a thread looks for the next one for some tens of microseconds, then sleeps, so that loops which follow
// each other closely start within about a microsecond, and an idle team costs nothing. Each thread has a seat of its
// own, in cache lines that only it and the owner touch. So a loop of few parts costs no more on a large team, and
// nobody waits for threads without a part.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/function_ref.h"

namespace lockstep::base {

/// Returns how often a thread looks for work before it sleeps, by the variables of OpenMP's threads: GOMP_SPINCOUNT
/// (`count`) and OMP_WAIT_POLICY (`policy`), null if not set. Never more than some milliseconds' worth.
int64_t spins_of(const char* count, const char* policy);

class Team {
 public:
  using Body = FunctionRef<void(int part, int parts)>;

  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs body(part, parts) for each part on `threads` threads (1 to `parts`), the caller's included. Thread t takes
  /// parts t, t + threads, ... Starts threads that do not exist yet; throws std::system_error if the system refuses.
  void run(int parts, int threads, Body body);

 private:
  struct Seat;

  void start_threads(int threads);
  void call(int parts, int threads, Body body) noexcept;
  [[nodiscard]] bool all_done(int threads) const;
  static void serve(Seat& seat);

  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace lockstep::base
