#include "launch/register_keeper.h"

#include <algorithm>

#include "authority/launcher_lines.h"

namespace lockstep::launch {
namespace {

/// Time after which a role on another host has ended, too, if its connection has (under_launcher.h).
constexpr std::chrono::seconds kFarEnd{30};

}  // namespace

void RegisterKeeper::on_event(const RoleEvent& event) {
  using Kind = RoleEvent::Kind;
  const bool begins = event.kind == Kind::started || event.kind == Kind::restarted;
  const bool ends = event.kind == Kind::died || event.kind == Kind::ended;
  const int index = begins || ends ? spec_.member_index(event.task) : -1;
  if (index < 0) return;
  Member& member = members_[static_cast<size_t>(index)];
  member.lives = begins;
  if (ends) member.dead_from = Clock::now() + (event.remote ? kFarEnd : std::chrono::seconds(0));
}

bool RegisterKeeper::dead(int member) const {
  if (member < 0 || static_cast<size_t>(member) >= members_.size()) return true;
  const Member& known = members_[static_cast<size_t>(member)];
  return !known.lives && known.dead_from && Clock::now() >= *known.dead_from;
}

bool RegisterKeeper::vacant() const {
  const authority::Seats& seats = cell_.group().seats;
  return std::all_of(seats.begin(), seats.end(), [this](const authority::Seat& seat) { return dead(seat.member); });
}

std::optional<std::string> RegisterKeeper::answer(const std::string& line) {
  const std::optional<authority::LauncherQuestion> question = authority::parse_question(line);
  if (!question) return std::nullopt;
  authority::LauncherAnswer answer{question->number, {authority::Outcome::present, cell_.group(), {}}};
  if (question->swap) {
    const authority::Group& expected = question->swap->expected;
    const bool latest = expected.number == cell_.group().number && expected.id == cell_.group().id;
    answer.answer = cell_.swap(latest ? cell_.group() : expected, question->swap->next);
  }
  answer.answer.vacant = vacant();
  return authority::answer_line(answer);
}

}  // namespace lockstep::launch
