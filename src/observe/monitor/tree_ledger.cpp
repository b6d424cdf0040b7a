#include "observe/monitor/tree_ledger.h"

#include <algorithm>
#include <vector>

namespace lockstep::observe {
namespace {

constexpr int kCreditLooks = 2;

uint64_t growth(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

}  // namespace

void TreeLedger::look(std::span<const Entry> living) {
  ++looks_;
  for (size_t i = 0; i < living.size(); ++i) {
    Member& member = members_[living[i].pid];
    member.last.pid = living[i].pid;
    member.last.parent = living[i].parent;
    member.order = i;
    member.look = looks_;
  }
  remove_ended();
  for (const Entry& entry : living) count(members_[entry.pid], entry);
}

/// Removes processes that were not seen any more, the youngest first, so that a child's use moves to its parent.
void TreeLedger::remove_ended() {
  std::vector<Member> gone;
  for (auto member = members_.begin(); member != members_.end();) {
    const bool ended = member->second.look != looks_;
    if (ended) gone.push_back(member->second);
    member = ended ? members_.erase(member) : std::next(member);
  }
  std::sort(gone.begin(), gone.end(), [](const Member& a, const Member& b) { return a.order > b.order; });
  for (size_t i = 0; i < gone.size(); ++i) {
    const Member& child = gone[i];
    const auto living = members_.find(child.last.parent);
    Member* parent = living == members_.end() ? nullptr : &living->second;
    for (size_t j = i + 1; j < gone.size() && parent == nullptr; ++j) {
      if (gone[j].last.pid == child.last.parent) parent = &gone[j];
    }
    if (parent == nullptr) continue;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      parent->credit[kind] += child.last.own[kind] + child.last.waited[kind] + child.credit[kind];
    }
    parent->credit_looks = 0;
  }
}

void TreeLedger::count(Member& member, const Entry& now) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const uint64_t waited = growth(member.last.waited[kind], now.waited[kind]);
    const uint64_t known = std::min(waited, member.credit[kind]);
    member.credit[kind] -= known;
    totals_[kind] += growth(member.last.own[kind], now.own[kind]) + waited - known;
  }
  if (++member.credit_looks >= kCreditLooks) member.credit = {};
  member.last = now;
}

}  // namespace lockstep::observe
