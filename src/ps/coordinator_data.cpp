// The coordinator's data: assigned batches and remaining data.
#include <algorithm>
#include <limits>

#include "ps/coordinator.h"

namespace lockstep::ps {
namespace {

/// Returns positions of the current pass to the remaining data.
void give_back(data::Remainder& rest, const data::PassPart& part) {
  auto at = std::find_if(rest.parts.begin(), rest.parts.end(), [&](const auto& p) { return p.pass >= part.pass; });
  if (at == rest.parts.end() || at->pass != part.pass) at = rest.parts.insert(at, {part.pass, {}});
  std::vector<base::Range>& ranges = at->ranges;
  ranges.insert(ranges.end(), part.ranges.begin(), part.ranges.end());
  std::sort(ranges.begin(), ranges.end(), [](const base::Range& a, const base::Range& b) { return a.begin < b.begin; });
  std::vector<base::Range> merged;
  for (const base::Range& range : ranges) {
    if (!merged.empty() && merged.back().end == range.begin) {
      merged.back().end = range.end;
    } else {
      merged.push_back(range);
    }
  }
  ranges = std::move(merged);
}

}  // namespace

bool Coordinator::data_left() const {
  if (options_.passes == 0 || !options_.sharded) return false;
  const data::Remainder rest = left(true);
  if (rest.next_pass < options_.passes) return true;
  return std::any_of(rest.parts.begin(), rest.parts.end(),
                     [&](const data::PassPart& part) { return part.pass < options_.passes; });
}

data::Remainder Coordinator::left(bool with_living) const {
  if (!options_.sharded) return data::unapplied(plan_, std::vector<int64_t>{own_rounds()});
  std::vector<int64_t> done(static_cast<size_t>(plan_.shard.count), 0);
  for (const Member& member : members_) {
    if (member.place >= 0) done[static_cast<size_t>(member.place)] = member.done;
  }
  data::Remainder rest = data::unapplied(plan_, done);
  for (const Member& member : members_) {
    if (!with_living && computes(member)) continue;
    for (const data::PassPart& part : member.reserved.parts) give_back(rest, part);
  }
  return rest;
}

/// Not sharded: returns the rounds done by every active member, or by the furthest member if none is active.
int64_t Coordinator::own_rounds() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (const Member& member : members_) {
    if (counts(member)) least = std::min(least, member.done);
    most = std::max(most, member.done);
  }
  return std::min(least, most);
}

data::Remainder Coordinator::remaining() const { return left(true); }

/// Asynchronous: members that are alive keep the batches they are computing, whatever the next plan says.
void Coordinator::reserve_current_batches() {
  for (int i = 0; i < options_.members; ++i) {
    Member& member = at(i);
    const bool busy = computes(member) && member.answered && member.told_plan == plan_.id;
    if (busy && member.reserved.rounds == 0) reserve(member, batches_per_update(i));
  }
}

/// Reserves the batches of the member's next push as its trainer will take them: up to `most`, fewer at the end of a
/// part, and at least one with an example.
void Coordinator::reserve(Member& member, int64_t most) {
  Reserved& reserved = member.reserved;
  reserved = {{}, 0, 0, plan_.id};
  data::Round round;
  for (size_t ends = 0; reserved.examples == 0 && ends < plan_.data.parts.size() + 2;) {
    for (int64_t n = 0; n < most; ++n) {
      member.told->read(member.done - member.told_at, round);
      if (options_.passes > 0 && round.pass >= options_.passes) return;
      ++member.done;
      ++reserved.rounds;
      reserved.examples += round.count;
      if (round.count > 0) reserved.parts.push_back({round.pass, round.ranges});
      const bool last = round.index_in_part + 1 == round.rounds_in_part;
      ends += static_cast<size_t>(last);
      if (last) break;
    }
  }
}

void Coordinator::replan() {
  if (options_.sharded) {
    if (!options_.sync) reserve_current_batches();
    plan_.data = left(false);
  }
  // If not sharded and asynchronous, nothing changes for the current members.
  if (options_.sharded || options_.sync || plan_.id == 0) ++plan_.id;
  for (Member& member : members_) {
    if (!computes(member)) member.reserved = {};
    if (member.wants_in) activate(member);
  }
  sharing_ = 0;
  for (Member& member : members_) {
    const bool shares = member.presence != Presence::gone && !member.finished;
    member.place = shares ? sharing_++ : -1;
    if (options_.sharded) member.done = 0;
  }
  if (options_.sharded) plan_.shard = {0, std::max(sharing_, 1)};
  plan_is_old_ = false;
}

std::optional<data::Plan> Coordinator::unseen_plan(int number, uint64_t known) {
  Member& member = at(number);
  member.answered = true;
  const bool told = member.told_plan == plan_.id;
  const bool begun = options_.sharded && member.done > 0;
  if ((told && (known == plan_.id || begun)) || member.place < 0) return std::nullopt;
  member.told_plan = plan_.id;
  data::Plan plan = plan_;
  if (options_.sharded) {
    plan.shard.index = member.place;
  } else {
    plan.data = data::unapplied(plan_, std::vector<int64_t>{member.done});
  }
  member.told_at = member.done;
  plan.rounds_done = member.rounds;
  member.told = std::make_unique<data::Rounds>(plan);
  return plan;
}

/// Returns true if the next `rounds` rounds of a member's plan hold this many examples in no more batches than a push
/// has.
bool Coordinator::holds(int number, int64_t rounds, uint64_t examples) const {
  const Member& member = at(number);
  if (member.told_plan != plan_.id || !member.told || rounds < 0) return false;
  const int64_t most = batches_per_update(number);
  data::Round round;
  uint64_t found = 0;
  int64_t batches = 0;
  for (int64_t i = 0; i < rounds; ++i) {
    member.told->read(member.done - member.told_at + i, round);
    found += static_cast<uint64_t>(round.count);
    batches += static_cast<int64_t>(round.count > 0);
    if (found > examples || batches > most) return false;
  }
  return found == examples;
}

/// Returns true if the push has exactly the batches that are due from its sender.
bool Coordinator::is_due(const Push& push) const {
  if (push.plan == plan_.id) return push.rounds > 0 && holds(push.member, push.rounds, push.report.examples);
  const Reserved& reserved = at(push.member).reserved;
  return push.plan == reserved.plan && push.rounds == reserved.rounds && reserved.rounds > 0 &&
         push.report.examples == static_cast<uint64_t>(reserved.examples);
}

void Coordinator::note_contribution(const Member& member, const Push& push) {
  Contributed made{push.member, push.report.examples, push.report.loss_sum, {}};
  if (push.plan != plan_.id) {
    made.parts = member.reserved.parts;
  } else {
    data::Round round;
    for (int64_t i = 0; member.told && i < push.rounds; ++i) {
      member.told->read(member.done - member.told_at + i, round);
      if (round.count > 0) made.parts.push_back({round.pass, round.ranges});
    }
  }
  contributions_.push_back(std::move(made));
}

int64_t Coordinator::batches_per_update(int number) const {
  if (!options_.sync || sharing_ == 0 || options_.aggregate <= sharing_) return options_.accumulate;
  const bool one_more = at(number).place < options_.aggregate % sharing_;
  return options_.accumulate * (options_.aggregate / sharing_ + static_cast<int64_t>(one_more));
}

bool Coordinator::shares_differ() const {
  if (options_.aggregate == 0 || options_.aggregate >= sharing_ || !options_.sharded) return false;
  const int64_t pass = plan_.data.parts.empty() ? plan_.data.next_pass : plan_.data.parts.front().pass;
  const int64_t rounds = plan_.rounds_before(pass + 1);
  bool someone_through = false;
  bool someone_not = false;
  for (const Member& member : members_) {
    if (!counts(member)) continue;
    (member.done >= rounds ? someone_through : someone_not) = true;
  }
  return someone_through && someone_not;
}

}  // namespace lockstep::ps
