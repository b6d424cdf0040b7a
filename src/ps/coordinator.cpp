#include "ps/coordinator.h"

#include <algorithm>

#include "lockstep/error.h"
#include "ps/messages.h"

namespace lockstep::ps {
namespace {

constexpr size_t kStalenessBins = 64;
constexpr double kReturnWait = 15;  ///< seconds that the members of a ledger may take to come back

void count_staleness(std::vector<uint64_t>& bins, uint64_t staleness) {
  const size_t bin = std::min<uint64_t>(staleness, kStalenessBins - 1);
  if (bins.size() <= bin) bins.resize(bin + 1);
  ++bins[bin];
}

/// Gives positions of a pass that is under way back to what is left.
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

MemberRecord record_of(const wire::MemberState& saved) {
  MemberRecord record;
  record.iterations = saved.iterations();
  record.examples = saved.examples();
  record.updates = saved.updates();
  record.dropped = saved.dropped();
  record.joins = saved.joins();
  record.finished_seconds = saved.finished_seconds();
  record.staleness.assign(saved.staleness().begin(), saved.staleness().end());
  record.wait_seconds = saved.wait_seconds();
  record.busy_seconds = saved.busy_seconds();
  record.loss = saved.loss();
  record.accuracy = saved.accuracy();
  return record;
}

Coordinator::Coordinator(const CoordinatorOptions& options, uint64_t version, data::Remainder data, double now)
    : options_(options),
      version_(version),
      members_(static_cast<size_t>(options.members)),
      start_(now),
      expected_until_(now + options.start_wait) {
  plan_.data = std::move(data);
  plan_.batch = options.batch;
  plan_.examples = options.examples;
  plan_.shard = {0, 1};
  replan();
  check_limit();
}

Coordinator::Coordinator(const CoordinatorOptions& options, const wire::Ledger& ledger, double now)
    : options_(options),
      version_(ledger.version()),
      membership_(ledger.membership()),
      members_(static_cast<size_t>(options.members)),
      examples_(ledger.examples()),
      stop_(static_cast<train::StopReason>(ledger.stop())),
      start_(now - ledger.seconds()),
      expected_until_(now + kReturnWait) {
  plan_.id = ledger.plan_id();
  plan_.data = from_wire(ledger.plan());
  plan_.batch = options.batch;
  plan_.examples = options.examples;
  plan_.shard = {0, std::max(ledger.plan_count(), 1)};
  latest_ = {ledger.loss_sum(), ledger.correct(), 0};
  if (ledger.has_commit()) decision_ = from_wire(ledger.commit());
  const int known = std::min(options.members, ledger.members_size());
  for (int i = 0; i < known; ++i) load_member(at(i), ledger.members(i));
  for (int i = known; i < options.members; ++i) at(i).presence = Presence::gone;
  replan();
  check_limit();
}

void Coordinator::load_member(Member& member, const wire::MemberState& saved) {
  const bool away = static_cast<Presence>(saved.presence()) == Presence::gone;
  member.presence = away ? Presence::gone : Presence::absent;
  member.finished = saved.finished();
  member.incarnation = saved.incarnation();
  member.applied = saved.applied();
  member.clock = saved.clock();
  member.place = saved.place();
  member.done = saved.done();
  for (const wire::PassPart& part : saved.reserved()) member.reserved.push_back(from_wire(part));
  member.record = record_of(saved);
}

void Coordinator::save_member(const Member& member, wire::MemberState& saved) const {
  saved.set_presence(static_cast<uint32_t>(member.presence));
  saved.set_finished(member.finished);
  saved.set_incarnation(member.incarnation);
  saved.set_applied(member.applied);
  saved.set_clock(member.clock);
  saved.set_place(member.place);
  saved.set_done(member.done);
  for (const data::PassPart& part : member.reserved) to_wire(part, *saved.add_reserved());
  const MemberRecord& record = member.record;
  saved.set_iterations(record.iterations);
  saved.set_examples(record.examples);
  saved.set_updates(record.updates);
  saved.set_dropped(record.dropped);
  saved.set_joins(record.joins);
  saved.set_finished_seconds(record.finished_seconds);
  for (const uint64_t count : record.staleness) saved.add_staleness(count);
  saved.set_wait_seconds(record.wait_seconds);
  saved.set_busy_seconds(record.busy_seconds);
  saved.set_loss(record.loss);
  saved.set_accuracy(record.accuracy);
}

void Coordinator::save(wire::Ledger& ledger, double now) const {
  ledger.Clear();
  ledger.set_version(version_);
  ledger.set_membership(membership_);
  ledger.set_examples(examples_);
  ledger.set_stop(static_cast<uint32_t>(stop_));
  ledger.set_seconds(now - start_);
  ledger.set_plan_id(plan_.id);
  to_wire(plan_.data, *ledger.mutable_plan());
  ledger.set_plan_count(plan_.shard.count);
  ledger.set_loss_sum(latest_.loss_sum);
  ledger.set_correct(latest_.correct);
  if (decision_) to_wire(*decision_, *ledger.mutable_commit());
  for (const Member& member : members_) save_member(member, *ledger.add_members());
}

bool Coordinator::counts(const Member& member) const {
  return member.presence != Presence::gone && !member.finished && member.place >= 0;
}

bool Coordinator::computes(const Member& member) const { return member.presence == Presence::active && counts(member); }

int Coordinator::active() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.presence == Presence::active; }));
}

void Coordinator::activate(Member& member) {
  member.presence = Presence::active;
  member.finished = member.wants_in = false;
  member.told_plan = 0;
  // A joiner starts at the slowest one's clock: nobody has to wait for it to catch up.
  uint64_t slowest = UINT64_MAX;
  for (const Member& other : members_) {
    if (&other != &member && computes(other)) slowest = std::min(slowest, other.clock);
  }
  if (slowest != UINT64_MAX) member.clock = slowest;
  ++membership_;
}

bool Coordinator::join(int number, uint64_t incarnation) {
  Member& member = at(number);
  if (member.incarnation != incarnation) {
    member.applied = member.arriving = 0;  // it counts its pushes anew
    ++member.record.joins;
  }
  member.incarnation = incarnation;
  member.pending.reset();
  // One that was expected takes the share that waits for it.
  if (member.presence == Presence::absent && member.place >= 0 && member.done == 0 && !plan_is_old_) {
    activate(member);
    return true;
  }
  member.presence = Presence::gone;
  member.finished = false;
  member.wants_in = true;
  plan_is_old_ = true;
  const bool nobody_computes =
      std::none_of(members_.begin(), members_.end(), [&](const Member& m) { return computes(m); });
  if (!options_.sync || nobody_computes) replan();
  return takes_part(number, incarnation);
}

bool Coordinator::takes_part(int number, uint64_t incarnation) const {
  return computes(at(number)) && at(number).incarnation == incarnation;
}

bool Coordinator::depart(int number, uint64_t incarnation) {
  Member& member = at(number);
  if (member.incarnation != incarnation || (member.presence != Presence::active && !member.wants_in)) return false;
  member.presence = Presence::gone;
  member.wants_in = false;
  member.pending.reset();
  ++membership_;
  if (member.finished) return true;
  plan_is_old_ = true;
  if (!options_.sync) replan();
  return true;
}

void Coordinator::finish(int number, uint64_t incarnation, train::StopReason reason, int64_t rounds, double now) {
  Member& member = at(number);
  if (member.incarnation != incarnation || member.finished) return;
  const bool own_share = reason == train::StopReason::data || reason == train::StopReason::epochs;
  if (!own_share) stop(reason);
  member.done += rounds;
  member.finished = true;
  member.pending.reset();
  member.record.finished_seconds = now - start_;
}

bool Coordinator::data_left() const {
  if (options_.passes == 0 || !options_.sharded) return false;
  const data::Remainder rest = left(true);
  if (rest.next_pass < options_.passes) return true;
  return std::any_of(rest.parts.begin(), rest.parts.end(),
                     [&](const data::PassPart& part) { return part.pass < options_.passes; });
}

bool Coordinator::needed_again(int number) const {
  const Member& member = at(number);
  if (stop_ != train::StopReason::none || !member.finished) return false;
  const bool others =
      std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return counts(m) || m.wants_in; });
  return !others && data_left();
}

std::vector<int> Coordinator::expire(double now) {
  std::vector<int> late;
  if (now < expected_until_ || active() == 0) return late;
  for (int i = 0; i < options_.members; ++i) {
    Member& member = at(i);
    if (member.presence != Presence::absent) continue;
    member.presence = Presence::gone;
    ++membership_;
    late.push_back(i);
  }
  if (late.empty()) return late;
  plan_is_old_ = true;
  if (!options_.sync) replan();
  return late;
}

/// Asynchronous: what living members are computing stays theirs, whatever the next plan says.
void Coordinator::reserve_current_batches() {
  for (int i = 0; i < options_.members; ++i) {
    Member& member = at(i);
    if (!computes(member) || member.told_plan != plan_.id || !member.reserved.empty()) continue;
    data::Plan own = plan_;
    own.shard.index = member.place;
    for (int64_t n = batches_per_update(i); n > 0; --n) {
      const data::Round round = own.round(member.done++);
      if (!round.ranges.empty()) member.reserved.push_back({round.pass, round.ranges});
    }
  }
}

data::Remainder Coordinator::left(bool with_living) const {
  std::vector<int64_t> done(static_cast<size_t>(plan_.shard.count), 0);
  for (const Member& member : members_) {
    if (member.place >= 0) done[static_cast<size_t>(member.place)] = member.done;
  }
  data::Remainder rest = data::unapplied(plan_, done);
  for (const Member& member : members_) {
    if (!with_living && computes(member)) continue;
    for (const data::PassPart& part : member.reserved) give_back(rest, part);
  }
  return rest;
}

data::Remainder Coordinator::remaining() const { return left(true); }

void Coordinator::replan() {
  if (!options_.sync) reserve_current_batches();
  plan_.data = left(false);
  ++plan_.id;
  for (Member& member : members_) {
    if (!computes(member)) member.reserved.clear();
    if (member.wants_in) activate(member);
  }
  int places = 0;
  for (Member& member : members_) {
    const bool shares = member.presence != Presence::gone && !member.finished;
    member.place = shares ? places++ : -1;
    member.done = 0;
  }
  plan_.shard = {0, std::max(places, 1)};
  plan_is_old_ = false;
}

int64_t Coordinator::batches_per_update(int number) const {
  const int64_t sharing = plan_.shard.count;
  if (!options_.sync || options_.aggregate <= sharing) return options_.accumulate;
  const bool one_more = at(number).place < options_.aggregate % sharing;
  return options_.accumulate * (options_.aggregate / sharing + static_cast<int64_t>(one_more));
}

std::optional<data::Plan> Coordinator::news(int number) {
  Member& member = at(number);
  if (member.told_plan == plan_.id || member.place < 0) return std::nullopt;
  member.told_plan = plan_.id;
  data::Plan plan = plan_;
  plan.shard.index = member.place;
  plan.rounds_done = static_cast<int64_t>(member.record.iterations);
  if (!options_.sharded) plan.shard = {0, 1};
  return plan;
}

Verdict Coordinator::offer(const Push& push) {
  Member& member = at(push.member);
  if (stop_ != train::StopReason::none) return Verdict::stopped;
  if (member.incarnation == push.incarnation && push.sequence <= member.applied) return Verdict::repeated;
  if (!takes_part(push.member, push.incarnation)) return Verdict::rejoin;
  const bool known = push.plan == plan_.id || (!options_.sync && !member.reserved.empty());
  if (!options_.sync) return known ? Verdict::accepted : Verdict::rejoin;
  if (push.base != version_ || !known) {
    ++member.record.dropped;
    return Verdict::dropped;
  }
  member.pending = push;
  received(0, push.member, push.incarnation, push.sequence);
  return Verdict::accepted;
}

void Coordinator::received(int server, int number, uint64_t incarnation, uint64_t sequence) {
  Member& member = at(number);
  if (incarnation != member.incarnation || sequence < member.arriving) return;
  if (sequence > member.arriving || member.servers.empty()) {
    member.servers.assign(static_cast<size_t>(options_.servers), false);
  }
  member.arriving = sequence;
  member.servers[static_cast<size_t>(server)] = true;
}

void Coordinator::forget(int server) {
  for (Member& member : members_) {
    if (!member.servers.empty()) member.servers[static_cast<size_t>(server)] = false;
  }
}

bool Coordinator::complete(const Member& member) const {
  return member.pending && member.arriving == member.pending->sequence &&
         std::all_of(member.servers.begin(), member.servers.end(), [](bool has) { return has; });
}

std::optional<Decision> Coordinator::decide() const {
  if (!options_.sync || stop_ != train::StopReason::none) return std::nullopt;
  int64_t expected = 0;
  Decision decision{version_ + 1, {}, 1};
  for (int i = 0; i < options_.members; ++i) {
    const Member& member = at(i);
    if (!counts(member)) continue;
    ++expected;
    if (complete(member)) decision.contributors.push_back({i, member.incarnation, member.pending->sequence, 1});
  }
  const int64_t enough = options_.aggregate == 0 ? expected : std::min(expected, options_.aggregate);
  if (decision.contributors.empty() || static_cast<int64_t>(decision.contributors.size()) < enough) return std::nullopt;
  decision.contributors.resize(static_cast<size_t>(enough));
  weigh(decision);
  return decision;
}

/// As the trainer weighs accumulated batches: means of batches count by their examples, relative to the first.
void Coordinator::weigh(Decision& decision) const {
  const auto examples = [&](const Contributor& c) { return static_cast<float>(at(c.member).pending->report.examples); };
  std::erase_if(decision.contributors, [&](const Contributor& c) { return examples(c) == 0; });
  if (decision.contributors.empty() || !options_.mean) return;
  if (!options_.mean_loss) {
    decision.mean_scale = 1.0F / static_cast<float>(decision.contributors.size());
    return;
  }
  const float first = examples(decision.contributors.front());
  uint64_t total = 0;
  for (Contributor& c : decision.contributors) {
    c.weight = examples(c) / first;
    total += at(c.member).pending->report.examples;
  }
  decision.mean_scale = first / static_cast<float>(total);
}

void Coordinator::count_applied(Member& member, const Push& push, uint64_t staleness) {
  member.applied = push.sequence;
  if (push.plan == plan_.id) {
    member.done += push.rounds;
  } else {
    member.reserved.clear();
  }
  member.clock += static_cast<uint64_t>(push.rounds);
  member.latest_staleness = staleness;
  member.record.iterations += static_cast<uint64_t>(push.rounds);
  member.record.examples += push.report.examples;
  ++member.record.updates;
  count_staleness(member.record.staleness, staleness);
  examples_ += push.report.examples;
  latest_.loss_sum += push.report.loss_sum;
  latest_.correct += push.report.correct;
  latest_.examples += push.report.examples;
}

void Coordinator::applied(const Push& push) {
  latest_ = {};
  count_applied(at(push.member), push, version_ - std::min(version_, push.base));
  ++version_;
  check_limit();
}

void Coordinator::committed(const Decision& decision) {
  latest_ = {};
  version_ = decision.version;
  decision_ = decision;
  for (Member& member : members_) {
    if (!member.pending) continue;
    const auto number = static_cast<int>(&member - members_.data());
    const bool in =
        member.pending->report.examples == 0 || std::any_of(decision.contributors.begin(), decision.contributors.end(),
                                                            [&](const Contributor& c) { return c.member == number; });
    if (in && complete(member)) {
      count_applied(member, *member.pending, 0);
    } else {
      ++member.record.dropped;
    }
    member.pending.reset();
  }
  check_limit();
  if (plan_is_old_ || shares_differ()) replan();
}

bool Coordinator::shares_differ() const {
  if (options_.aggregate == 0 || options_.aggregate >= plan_.shard.count || !options_.sharded) return false;
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

std::vector<int> Coordinator::awaited() const {
  std::vector<int> names;
  uint64_t slowest = UINT64_MAX;
  for (const Member& member : members_) {
    if (counts(member)) slowest = std::min(slowest, member.clock);
  }
  for (int i = 0; i < options_.members; ++i) {
    if (!counts(at(i))) continue;
    if (options_.sync ? !complete(at(i)) : at(i).clock == slowest) names.push_back(i);
  }
  return names;
}

bool Coordinator::may_go_on(int number) const {
  if (options_.sync || options_.max_staleness < 0 || stop_ != train::StopReason::none) return true;
  const Member& member = at(number);
  return std::all_of(members_.begin(), members_.end(), [&](const Member& other) {
    return !counts(other) || other.clock + static_cast<uint64_t>(options_.max_staleness) >= member.clock;
  });
}

void Coordinator::stop(train::StopReason reason) {
  if (stop_ == train::StopReason::none) stop_ = reason;
}

void Coordinator::check_limit() {
  if (options_.limit_steps > 0 && version_ >= options_.limit_steps) stop(train::StopReason::steps);
}

bool Coordinator::all_done() const {
  const bool stopping = stop_ != train::StopReason::none;
  for (const Member& member : members_) {
    if (computes(member) || (!stopping && (counts(member) || member.wants_in))) return false;
  }
  return stopping || !data_left();
}

}  // namespace lockstep::ps
