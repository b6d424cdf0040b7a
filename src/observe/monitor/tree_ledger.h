// Adds up what the processes of a tree use while they come and go, so that nothing counts twice and no total goes back:
// when a process ends, the system adds what it used to what its parent `waited` for. Plain logic; for one thread.
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

  /// One process as it was seen.
  struct Entry {
    pid_t pid = 0;
    pid_t parent = 0;
    Counts own{};
    Counts waited{};  ///< of children that have ended
  };

  /// All that live now. A parent must have been looked at before its children.
  void look(std::span<const Entry> living);
  /// Of all looks; what they had used at the first one included.
  [[nodiscard]] const Counts& totals() const { return totals_; }

 private:
  struct Member {
    Entry last;
    size_t order = 0;   ///< parents have smaller ones
    uint64_t look = 0;  ///< the last that saw it
    /// What children that are gone were counted with; the parent's `waited` will show it again, now or at the next
    /// look.
    Counts credit{};
    int credit_looks = 0;
  };

  void bury();
  void count(Member& member, const Entry& now);

  std::map<pid_t, Member> members_;
  uint64_t looks_ = 0;
  Counts totals_{};
};

}  // namespace lockstep::observe
