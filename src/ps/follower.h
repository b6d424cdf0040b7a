// The decisions of a server that follows ps:0: it applies the updates that ps:0 has announced, each once and in their
// order, and nothing else. So every update is on all servers or on none, and all reach the same versions. Pure logic
// over plain values: no network, no threads, and the caller passes the seconds. The caller locks.
//
// ps:0 announces an update only after every server has its pushes. A push that arrived whole therefore stays here until
// its member's next one, even if its connection ends: ps:0 may have counted it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "ps/coordinator.h"

namespace lockstep::ps {

/// Seconds to wait for a push that its worker can send again.
constexpr double kLostGradient = 10;

class Follower {
 public:
  /// Starts at `version`, with each member's latest push in it.
  Follower(uint64_t version, std::map<int, PushName> applied) : version_(version), applied_(std::move(applied)) {}

  [[nodiscard]] uint64_t version() const { return version_; }
  [[nodiscard]] const std::map<int, PushName>& applied() const { return applied_; }
  [[nodiscard]] bool is_applied(int member, const PushName& push) const;

  /// A whole push is here, in place of the member's earlier one.
  void arrived(int member, const PushName& push) { here_[member] = push; }
  /// The member's push is overwritten.
  void overwritten(int member) { here_.erase(member); }
  [[nodiscard]] const std::map<int, PushName>& here() const { return here_; }

  /// ps:0 announces an update. Throws DataError if an earlier one is missing.
  void announced(const Decision& update, double now);
  /// The next update to apply.
  struct Next {
    Decision update;                   ///< with all its pushes
    std::vector<Contributor> missing;  ///< lost contributors
  };
  /// Returns nothing while a push of the next update is missing; after kLostGradient it is lost, and at once if another
  /// process has taken the place of its worker.
  [[nodiscard]] std::optional<Next> next(double now) const;
  /// Contributors of the next update whose pushes are not here.
  [[nodiscard]] std::vector<Contributor> missing() const;
  /// `next` has been applied.
  void committed(double now);

 private:
  uint64_t version_;
  std::map<int, PushName> applied_;  ///< by member
  std::map<int, PushName> here_;     ///< by member
  std::deque<Decision> announced_;   ///< not applied yet
  double waits_since_ = 0;           ///< for the pushes of the first of them
};

}  // namespace lockstep::ps
