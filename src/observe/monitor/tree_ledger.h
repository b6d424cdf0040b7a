// Adds up the resources used by the processes of a tree while they start and end, so that nothing counts twice and no
// total decreases: when a process ends, the system adds its use to the `waited` of its parent. Plain logic; for one
// thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>

namespace lockstep::observe {

class TreeLedger {
 public:
  enum Kind : uint8_t { user, system, minor_faults, major_faults, read_bytes, written_bytes };
  static constexpr size_t kKinds = 6;
  using Counts = std::array<uint64_t, kKinds>;

  /// One reading of a process.
  struct Entry {
    pid_t pid = 0;
    pid_t parent = 0;
    Counts own{};
    Counts waited{};  ///< use of children that have ended
  };

  /// Takes a reading of all live processes. Parents must come before their children.
  void look(std::span<const Entry> living);
  /// Totals of all readings, including the use before the first one.
  [[nodiscard]] const Counts& totals() const { return totals_; }

 private:
  struct Member {
    Entry last;
    size_t order = 0;   ///< smaller in parents
    uint64_t look = 0;  ///< latest reading that saw it
    /// Use of children that are gone, as counted so far; the parent's `waited` will include it, now or at the next
    /// reading.
    Counts credit{};
    int credit_looks = 0;
  };

  void remove_ended();
  void count(Member& member, const Entry& now);

  std::map<pid_t, Member> members_;
  uint64_t looks_ = 0;
  Counts totals_{};
};

}  // namespace lockstep::observe
