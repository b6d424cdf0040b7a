#include "ps/follower.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::ps {

bool Follower::is_applied(int member, const PushName& push) const {
  const auto latest = applied_.find(member);
  return latest != applied_.end() && latest->second.incarnation == push.incarnation &&
         push.sequence <= latest->second.sequence;
}

void Follower::announced(const Decision& update, double now) {
  const uint64_t latest = announced_.empty() ? version_ : announced_.back().version;
  if (update.version <= latest) return;  // said again after a new connection
  if (update.version != latest + 1) {
    throw DataError(
        fmt::format("ps:0 announced step {} after step {}; the next one is {}", update.version, latest, latest + 1));
  }
  if (announced_.empty()) waits_since_ = now;
  announced_.push_back(update);
}

std::vector<Contributor> Follower::missing() const {
  std::vector<Contributor> missing;
  if (announced_.empty()) return missing;
  for (const Contributor& contributor : announced_.front().contributors) {
    const auto found = here_.find(contributor.member);
    const bool is_here = found != here_.end() && found->second == name_of(contributor);
    if (!is_here) missing.push_back(contributor);
  }
  return missing;
}

std::optional<Follower::Next> Follower::next(double now) const {
  if (announced_.empty()) return std::nullopt;
  Next next{announced_.front(), missing()};
  const bool lost =
      std::all_of(next.missing.begin(), next.missing.end(), [](const Contributor& c) { return c.replaced; });
  if (!lost && now - waits_since_ < kLostGradient) return std::nullopt;
  return next;
}

void Follower::committed(double now) {
  for (const Contributor& contributor : announced_.front().contributors) {
    applied_[contributor.member] = name_of(contributor);
  }
  version_ = announced_.front().version;
  announced_.pop_front();
  waits_since_ = now;
}

}  // namespace lockstep::ps
