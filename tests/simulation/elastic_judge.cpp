#include "simulation/elastic_judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::simulation {

using allreduce::elastic::Group;
using allreduce::elastic::MemberPhase;
using allreduce::elastic::Seat;

ElasticJudge::ElasticJudge(World& world, ElasticSetup setup)
    : world_(world), setup_(setup), members_(static_cast<size_t>(setup.members)) {
  ElasticState& first = states_[kInitial];
  first.id = kInitial;
  first.seen.assign(static_cast<size_t>(setup_.passes), 0);
}

void ElasticJudge::lives(Process process, uint64_t incarnation, const allreduce::elastic::Assembly* assembly) {
  members_[static_cast<size_t>(process)] = {incarnation, assembly, 0, 0};
}

void ElasticJudge::dies(Process process) {
  if (!left_.contains(process)) ++deaths_;
  lives(process, 0, nullptr);
}

bool ElasticJudge::lives(const Seat& seat) const {
  return members_[static_cast<size_t>(seat.member)].incarnation == seat.incarnation;
}

uint64_t ElasticJudge::group_of_holders(const Group& group, uint64_t state) const {
  uint64_t number = 0;
  for (const Seat& seat : group.seats) {
    const Member& member = members_[static_cast<size_t>(seat.member)];
    if (lives(seat) && member.state == state) number = std::max(number, member.number);
  }
  return number;
}

bool ElasticJudge::contains(uint64_t state, uint64_t ancestor) const {
  const uint64_t step = states_.at(ancestor).step;
  while (states_.at(state).step > step) state = states_.at(state).parent;
  return state == ancestor;
}

bool ElasticJudge::must_be_kept(const Agreed& agreed) const {
  if (agreed.state == 0 || setup_.allow_split) return false;
  if (setup_.authority) {
    return registered_.id == agreed.group.id && std::all_of(registered_.seats.begin(), registered_.seats.end(),
                                                            [this](const Seat& seat) { return lives(seat); });
  }
  int without = setup_.members;
  bool first = true;  // member 0 may be without it
  for (const Seat& seat : agreed.group.seats) {
    if (!lives(seat)) continue;
    --without;
    first = first && seat.member != 0;
  }
  return !(2 * without > setup_.members || (2 * without == setup_.members && first));
}

void ElasticJudge::connected(Process process, const Group& group, uint64_t source, const uint64_t* mine) {
  Member& member = members_[static_cast<size_t>(process)];
  const auto [known, fresh] = groups_.emplace(group.id, group);
  if (known->second != group) return fail(fmt::format("two groups of id {:x}", group.id));
  if (group.number <= member.number) {
    return fail(fmt::format("group {} after group {} at {}", group.number, member.number, world_.name(process)));
  }
  const uint64_t holders = group_of_holders(group, source);
  member.number = group.number;
  member.state = source;
  if (mine != nullptr && states_.at(*mine).step > states_.at(source).step) {
    return fail(fmt::format("{} goes back from step {} to step {}", world_.name(process), states_.at(*mine).step,
                            states_.at(source).step));
  }
  if (!fresh || agreed_.state == 0 || contains(source, agreed_.state) || !must_be_kept(agreed_)) return;
  // More steps count more, and of equally many those that a member has from a later group: it may have been away while
  // the others, without memory, began at a checkpoint.
  const uint64_t chosen = states_.at(source).step;
  const uint64_t lost = states_.at(agreed_.state).step;
  if (chosen > lost || (chosen == lost && holders > agreed_.group.number)) return;
  // It may never make a step: a member that was stopped connects a group that the others have left.
  loses_[group.id] =
      fmt::format("step {}, which all members of group {} had, is lost: group {} goes on from step {}",
                  states_.at(agreed_.state).step, agreed_.group.number, group.number, states_.at(source).step);
}

uint64_t ElasticJudge::applies(Process process, const Group& group, uint64_t before, const data::Plan& plan,
                               int64_t round) {
  const ElasticState& from = states_.at(before);
  const uint64_t id = (before ^ group.id ^ (from.step * 0x9E3779B97F4A7C15U)) * 0xBF58476D1CE4E5B9U | 2U;
  if (!states_.contains(id)) {
    ElasticState after = from;
    after.id = id;
    after.parent = before;
    after.step = from.step + 1;
    data::Plan all = plan;
    for (int rank = 0; rank < plan.shard.count; ++rank) {
      all.shard.index = rank;
      const data::Round part = all.round(round);
      for (const base::Range& range : part.ranges) {
        for (int64_t i = range.begin; i < range.end; ++i) {
          uint64_t& seen = after.seen[static_cast<size_t>(part.pass)];
          if ((seen >> static_cast<unsigned>(i) & 1U) != 0) {
            fail(fmt::format("example {} of pass {} is applied twice", i, part.pass));
            return id;
          }
          seen |= uint64_t{1} << static_cast<unsigned>(i);
          ++after.examples;
        }
      }
    }
    const std::vector<int64_t> done(static_cast<size_t>(plan.shard.count), round + 1);
    after.data = data::unapplied(plan, done);
    states_[id] = std::move(after);
  }
  members_[static_cast<size_t>(process)].state = id;
  std::set<int>& who = applied_[group.id][id];
  who.insert(process);
  // A member that was stopped may be the last one to finish a step that all others went on from, or that others made
  // before they died.
  const bool went_on =
      agreed_.state != 0 && states_.at(agreed_.state).step >= states_.at(id).step && contains(agreed_.state, id);
  const bool all_live = std::all_of(group.seats.begin(), group.seats.end(), [this](const Seat& s) { return lives(s); });
  const bool late = went_on || (group.number < highest_ && !all_live);
  if (who.size() == group.seats.size() && !late) {
    if (setup_.authority && group.number < highest_) {
      fail(fmt::format("group {} makes a step after group {}", group.number, highest_));
    }
    if (const auto lost = loses_.find(group.id); lost != loses_.end()) fail(lost->second);
    highest_ = std::max(highest_, group.number);
    sizes_.insert(group.seats.size());
    agreed_ = {id, group};
    applied_[group.id].clear();
  }
  return id;
}

void ElasticJudge::interrupts() {
  if (interrupted_ < 0) interrupted_ = world_.now();
}

void ElasticJudge::saved(Process process, uint64_t state, uint64_t group, bool summary, bool interrupted) {
  if (setup_.authority && registered_.number < group) fail("a file of a group that the register never held");
  kept_ = std::max(kept_, states_.at(state).step);
  if (!summary) return;
  const ElasticState& last = states_.at(state);
  for (const uint64_t seen : last.seen) {
    if (interrupted) break;
    if (seen != (uint64_t{1} << static_cast<unsigned>(setup_.examples)) - 1) {
      return fail(fmt::format("{} ends at step {} without all examples", world_.name(process), last.step));
    }
  }
  final_ = state;
  if (ended_ < 0) ended_ = world_.now();
}

void ElasticJudge::registered(const Group& group) {
  if (group.number < registered_.number) fail("the register goes back");
  registered_ = group;
}

void ElasticJudge::look() {
  if (setup_.allow_split) return;
  uint64_t able = 0;  // the group all of whose members are in it, so that it can make a step
  for (const Member& member : members_) {
    if (member.assembly == nullptr || member.assembly->phase() != MemberPhase::running) continue;
    const Group& group = member.assembly->group();
    if (group.id == able) continue;
    const bool whole = std::all_of(group.seats.begin(), group.seats.end(), [&](const Seat& seat) {
      const Member& other = members_[static_cast<size_t>(seat.member)];
      return lives(seat) && other.assembly->phase() == MemberPhase::running && other.assembly->group().id == group.id;
    });
    if (!whole) continue;
    if (able != 0) {
      return fail(fmt::format("groups {} and {} can train at once", groups_[able].number, group.number));
    }
    able = group.id;
  }
}

void ElasticJudge::look_at_end() {
  if (interrupted_ < 0) {
    if (final_ == 0) fail("nobody has written the results");
    return;
  }
  // Who ends because of an interrupt writes what its group has reached.
  const uint64_t reached = agreed_.state == 0 ? 0 : states_.at(agreed_.state).step;
  if (deaths_ == 0 && !setup_.allow_split && kept_ < reached) {
    fail(fmt::format("after an interrupt only step {} of {} is kept", kept_, reached));
  }
}

}  // namespace lockstep::simulation
