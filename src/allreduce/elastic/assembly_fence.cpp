// Whether a member may still write for its group. A process that was stopped, or cut off, while it wrote a checkpoint
// must not rename it into place once another group goes on without it.
#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kAwake = 1;     ///< seconds since the latest tick; after more, this process was stopped
constexpr double kAnswered = 1;  ///< seconds for the authority to answer; then the members' word counts

}  // namespace

void Assembly::begin_check(double now) {
  check_since_ = now;
  if (!rules_.authority.empty()) ask({}, now);
}

std::string Assembly::why_replaced() const {
  if (group_.number == 0) return {};
  if (phase_ == MemberPhase::forming || (phase_ == MemberPhase::running && !broken_.empty())) {
    return fmt::format("group {} has broken up", group_.number);
  }
  std::vector<int> here;
  for (int member = 0; member < rules_.members; ++member) {
    const MemberStatus status = status_of(member);
    const uint64_t other = status.group.number;
    // After an interrupt this member may have the newest state all the same.
    if (phase_ == MemberPhase::starting ? went_on(status) : other > group_.number) {
      return fmt::format("{} was in group {} after group {}", short_name(member), other, group_.number);
    }
    const Seat* const seat = authority::seat_of(group_, member);
    if (seat != nullptr && alive(*seat)) here.push_back(member);
  }
  // While it closes, members that die do not come back before the leader has written.
  const bool trains = phase_ == MemberPhase::running && rules_.authority.empty() && !rules_.allow_split;
  if (trains && !is_majority(here)) return fmt::format("group {} has lost its majority", group_.number);
  return {};
}

std::optional<std::string> Assembly::checked(double now) const {
  if (now - ticked_ > kAwake) return std::nullopt;
  std::string why = why_replaced();
  if (!why.empty() || rules_.authority.empty()) return why;
  const bool answered = register_.asked_at >= check_since_ && register_.read_at >= 0;
  if (!answered && now - check_since_ <= kAnswered && register_.unanswered.empty()) return std::nullopt;
  const bool waited = phase_ == MemberPhase::starting && in_group(register_.group, {rules_.me, rules_.incarnation});
  if (answered && register_.group.number > group_.number && !waited) {
    return fmt::format("group {} has taken the place of group {}", register_.group.number, group_.number);
  }
  return std::string();
}

}  // namespace lockstep::allreduce::elastic
