// Who may train.
#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kFresh = 1;         ///< seconds for which an answer of the authority counts as current
constexpr double kLarger = 3;        ///< seconds that a small part of a group leaves to the larger one
constexpr double kAskAgain = 0.5;    ///< seconds between questions that are not answered
constexpr size_t kMissing = 8;       ///< most members that a line describes one by one
constexpr double kLostRetry = 0.05;  ///< seconds after another group was first

}  // namespace

bool Assembly::is_majority(const std::vector<int>& chosen) const {
  const auto here = static_cast<int>(chosen.size());
  return 2 * here > rules_.members || (2 * here == rules_.members && chosen.front() == 0);
}

bool Assembly::may_train(const std::vector<int>& chosen) const {
  if (static_cast<int>(chosen.size()) < rules_.min_workers) return false;
  if (!rules_.authority.empty()) return follows(chosen);
  return rules_.allow_split || is_majority(chosen);
}

bool Assembly::complete(const std::vector<int>& chosen, double now) const {
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
  return whole && (begun || all || now - start_ >= rules_.start_wait);
}

bool Assembly::enough(const std::vector<int>& chosen, double now) const {
  if (!complete(chosen, now)) return false;
  if (!rules_.authority.empty() && now - forming_since_ < kLarger && may_be_outnumbered(chosen)) return false;
  return may_train(chosen);
}

void Assembly::await_more(const std::vector<int>& chosen) {
  std::vector<int> absent;
  std::string missing;
  for (int member = 0; member < rules_.members; ++member) {
    if (member == rules_.me || std::binary_search(chosen.begin(), chosen.end(), member)) continue;
    absent.push_back(member);
    const Peer& peer = at(member);
    if (absent.size() > kMissing) continue;
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", name(member),
                           peer.here ? "it is getting ready" : peer.why);
  }
  if (absent.size() > kMissing) {
    missing = fmt::format("{} of {} members, not here yet: {}", absent.size(), rules_.members, names_of(absent));
  }
  const std::string here = chosen.size() > kMissing ? fmt::format("{} members", chosen.size()) : names_of(chosen);
  awaited_ = fmt::format("{}; {}; {} here", missing, needed(), here + (chosen.size() == 1 ? " is" : " are"));
}

std::string Assembly::needed() const {
  const auto count = [this](int n) { return fmt::format("{} of the {} members are needed", n, rules_.members); };
  if (!rules_.authority.empty() && !register_.group.seats.empty()) {
    std::vector<int> before;
    for (const Seat& seat : register_.group.seats) before.push_back(seat.member);
    const std::string one =
        fmt::format("a member of group {} ({}) is needed", register_.group.number, names_of(before));
    return rules_.min_workers > 1 ? count(rules_.min_workers) + ", and " + one : one;
  }
  const bool fewest = rules_.allow_split || !rules_.authority.empty() || 2 * rules_.min_workers > rules_.members;
  if (fewest) return count(std::max(rules_.min_workers, 1));
  const std::string half = rules_.members % 2 == 0 ? fmt::format(", or half with {}", short_name(0)) : "";
  return fmt::format("more than half of the {} members are needed{}", rules_.members, half);
}

// The register.

bool Assembly::follows(const std::vector<int>& chosen) const {
  if (register_.vacant || register_.group.seats.empty()) return true;
  return std::any_of(chosen.begin(), chosen.end(),
                     [this](int member) { return authority::seat_of(register_.group, member) != nullptr; });
}

bool Assembly::may_be_outnumbered(const std::vector<int>& chosen) const {
  size_t mine = 0;
  size_t others = 0;
  for (const Seat& seat : register_.group.seats) {
    if (std::binary_search(chosen.begin(), chosen.end(), seat.member)) {
      ++mine;
    } else if (!confirmed_dead(seat)) {
      ++others;
    }
  }
  return others > mine;
}

void Assembly::ask(std::optional<authority::Swap> swap, double now) {
  if (question_ || now < register_.next_try) return;
  question_ = Question{std::move(swap)};
  asked_at_ = now;
  asked_in_ = group_.number;
  question_taken_ = false;
}

bool Assembly::knows_register(double now) {
  if (rules_.authority.empty()) return true;
  if (register_.read_at >= 0 && now - register_.read_at <= kFresh) return true;
  if (register_.read_at < 0) awaited_ = "an answer of " + rules_.authority;
  if (!register_.unanswered.empty()) awaited_ = register_.unanswered;
  ask({}, now);
  return false;
}

bool Assembly::may_regroup(bool wanted, double now) {
  // A group that already agreed to break up keeps to it between two answers.
  return knows_register(now) || (wanted && register_.unanswered.empty());
}

void Assembly::ask_to_start(double now) {
  std::vector<int> chosen;
  for (const Seat& seat : outstanding_->proposal.seats) chosen.push_back(seat.member);
  if (outstanding_->proposal.number <= register_.group.number || !follows(chosen)) return drop_promise();
  ask(authority::Swap{register_.group, outstanding_->decision->group}, now);
}

std::optional<Question> Assembly::take_question() {
  if (!question_ || question_taken_) return std::nullopt;
  question_taken_ = true;
  return question_;
}

void Assembly::answered(const authority::Answer& given, double now) {
  const std::optional<Question> question = std::exchange(question_, std::nullopt);
  if (!question) return;
  if (overtaken(given)) return react(now);
  const authority::Answer answer = forgot(given) ? forgetful(given) : given;
  const bool answers =
      answer.outcome != authority::Outcome::unanswered && answer.outcome != authority::Outcome::refused;
  if (answers) {
    if (!register_.unanswered.empty()) log("info", rules_.authority + " answers again");
    register_ = Known{answer.group, answer.vacant, asked_at_, now, {}, 0};
    note_seen(answer.group.number);
  } else {
    if (register_.unanswered.empty()) log("warning", "waiting for " + answer.failure.message());
    register_.unanswered = answer.failure.message();
    register_.read_at = -1;
    register_.next_try = now + kAskAgain;
    if (answer.outcome == authority::Outcome::refused && phase_ == MemberPhase::forming) {
      fail(answer.failure.message(), false);
    }
  }
  if (question->swap) take_swap(question->swap->next, answer, now);
  react(now);
}

bool Assembly::overtaken(const authority::Answer& answer) const {
  const bool answers =
      answer.outcome != authority::Outcome::unanswered && answer.outcome != authority::Outcome::refused;
  const uint64_t number = answer.group.number;
  return answers && number < group_.number && number >= std::max(asked_in_, register_.group.number);
}

/// Numbers of groups rise, so a register with an older group than this member's has lost data.
bool Assembly::forgot(const authority::Answer& answer) const {
  const bool answers =
      answer.outcome != authority::Outcome::unanswered && answer.outcome != authority::Outcome::refused;
  return answers && answer.group.number < std::max(group_.number, register_.group.number);
}

authority::Answer Assembly::forgetful(const authority::Answer& answer) const {
  const std::string text = fmt::format("{} has lost data: it holds group {} after group {}", rules_.authority,
                                       answer.group.number, std::max(group_.number, register_.group.number));
  return {authority::Outcome::refused, {}, {.kind = base::FailureKind::corrupt, .text = text}};
}

/// A swap that lost, or whose group was given up meanwhile, starts nothing. Unanswered ones are asked again.
void Assembly::take_swap(const Group& next, const authority::Answer& answer, double now) {
  const bool awaited = outstanding_ && outstanding_->decision && outstanding_->decision->group.id == next.id;
  if (!awaited) return;
  if (answer.outcome == authority::Outcome::won) return start_group(now);
  if (answer.outcome != authority::Outcome::lost) return;
  next_try_ = now + kLostRetry;
  drop_promise();
}

}  // namespace lockstep::allreduce::elastic
