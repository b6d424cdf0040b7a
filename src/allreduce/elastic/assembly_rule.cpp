// Who may train.
#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {

bool Assembly::is_majority(const std::vector<int>& chosen) const {
  const auto here = static_cast<int>(chosen.size());
  return 2 * here > rules_.members || (2 * here == rules_.members && chosen.front() == 0);
}

bool Assembly::may_train(const std::vector<int>& chosen) const {
  if (static_cast<int>(chosen.size()) < rules_.min_workers) return false;
  return rules_.allow_split || is_majority(chosen);
}

bool Assembly::enough(const std::vector<int>& chosen, double now) const {
  bool whole = false;
  bool begun = false;
  for (const int member : chosen) {
    const MemberStatus status = status_of(member);
    whole = whole || status.whole;
    begun = begun || status.group.number > 0;
  }
  int expected = rules_.expected > 0 ? rules_.expected : rules_.members;
  if (rules_.max_workers > 0) expected = std::min(expected, rules_.max_workers);
  const bool all = static_cast<int>(chosen.size()) >= expected;
  if (!whole || (!begun && !all && now - start_ < rules_.start_wait)) return false;
  return may_train(chosen);
}

void Assembly::await_more(const std::vector<int>& chosen) {
  std::string missing;
  for (int member = 0; member < rules_.members; ++member) {
    if (member == rules_.me || std::binary_search(chosen.begin(), chosen.end(), member)) continue;
    const Peer& peer = at(member);
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", name(member),
                           peer.here ? "it is getting ready" : peer.why);
  }
  std::string needed = fmt::format("more than half of the {} members are needed", rules_.members);
  if (rules_.allow_split || 2 * rules_.min_workers > rules_.members) {
    needed = fmt::format("{} of the {} members are needed", std::max(rules_.min_workers, 1), rules_.members);
  } else if (rules_.members % 2 == 0) {
    needed += fmt::format(", or half with {}", short_name(0));
  }
  awaited_ = fmt::format("{}; {}; {} here", missing, needed, names_of(chosen) + (chosen.size() == 1 ? " is" : " are"));
}

}  // namespace lockstep::allreduce::elastic
