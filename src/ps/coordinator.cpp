#include "ps/coordinator.h"

#include <algorithm>

#include "lockstep/error.h"
#include "ps/messages.h"

namespace lockstep::ps {
namespace {

constexpr size_t kStalenessBins = 64;

/// Adds an applied push to a worker's record. Rounds without data for the worker do not count as its work.
void count_update(WorkerHistory& record, const Push& push, uint64_t staleness) {
  if (push.report.examples == 0) return;
  record.iterations += static_cast<uint64_t>(push.rounds);
  record.examples += push.report.examples;
  ++record.updates;
  const size_t bin = std::min<uint64_t>(staleness, kStalenessBins - 1);
  if (record.staleness.size() <= bin) record.staleness.resize(bin + 1);
  ++record.staleness[bin];
  record.staleness_sum += staleness;
  record.staleness_max = std::max(record.staleness_max, staleness);
}

}  // namespace

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
  reached_.assign(static_cast<size_t>(options.servers), version);
  replan();
  check_limit();
}

bool Coordinator::counts(const Member& member) const {
  return member.presence != Presence::gone && !member.finished && member.place >= 0;
}

bool Coordinator::begins(const Member& member) const { return member.done == 0 || !options_.sharded; }

bool Coordinator::computes(const Member& member) const { return member.presence == Presence::active && counts(member); }

int Coordinator::active() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.presence == Presence::active; }));
}

void Coordinator::activate(Member& member) {
  member.presence = Presence::active;
  member.finished = member.wants_in = false;
  member.told_plan = 0;
  // A joiner starts at the clock of the slowest member, so that nobody has to wait for it to catch up.
  uint64_t slowest = UINT64_MAX;
  for (const Member& other : members_) {
    if (&other != &member && computes(other)) slowest = std::min(slowest, other.clock);
  }
  if (slowest != UINT64_MAX) member.clock = slowest;
  ++membership_;
}

bool Coordinator::join(int number, uint64_t incarnation) {
  Member& member = at(number);
  // Synchronous: it is in, but the answer was lost, or another server was. It begins its share again.
  const bool again = options_.sync && takes_part(number, incarnation) && begins(member);
  if (member.incarnation != incarnation) {
    member.applied = member.arriving = 0;  // its pushes are counted from 0 again
    ++member.record.joins;
  }
  member.incarnation = incarnation;
  member.pending.reset();
  member.answered = false;
  if (again) {
    member.told_plan = 0;
    return true;
  }
  // An expected member takes the share that is reserved for it.
  if (member.presence == Presence::absent && member.place >= 0 && begins(member)) {
    activate(member);
    return true;
  }
  member.presence = Presence::gone;
  member.finished = false;
  member.wants_in = true;
  plan_is_old_ = true;
  if (!options_.sync) replan();
  admit_waiting();
  return takes_part(number, incarnation);
}

/// Synchronous: waiting workers join as soon as nobody works on the next version.
void Coordinator::admit_waiting() {
  const auto any = [this](auto which) { return std::any_of(members_.begin(), members_.end(), which); };
  if (any([](const Member& m) { return m.wants_in; }) && !any([&](const Member& m) { return computes(m); })) replan();
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
  admit_waiting();
  return true;
}

void Coordinator::finish(int number, uint64_t incarnation, train::StopReason reason, int64_t rounds, double now) {
  Member& member = at(number);
  if (member.incarnation != incarnation || member.finished) return;
  const bool own_share = reason == train::StopReason::data || reason == train::StopReason::epochs;
  if (!own_share) stop(reason);
  if (holds(number, rounds, 0)) member.done += rounds;
  member.finished = true;
  member.wants_in = false;  // it came after a stop
  member.answered = false;
  member.pending.reset();
  member.record.finished_seconds = now - start_;
  admit_waiting();
}

bool Coordinator::needed_again(int number) const {
  const Member& member = at(number);
  if (stop_ != train::StopReason::none || !member.finished) return false;
  const bool others =
      std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return counts(m) || m.wants_in; });
  return !others && data_left();
}

std::vector<int> Coordinator::expire(double now, bool someone_here) {
  std::vector<int> late;
  if (now < expected_until_ || !someone_here) return late;
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
  admit_waiting();
  return late;
}

Verdict Coordinator::offer(const Push& push) {
  Member& member = at(push.member);
  if (stop_ != train::StopReason::none) return Verdict::stopped;
  if (member.incarnation == push.incarnation && push.sequence <= member.applied) return Verdict::repeated;
  if (!takes_part(push.member, push.incarnation)) return Verdict::rejoin;
  if (options_.sync && push.base != version_) {
    ++member.record.dropped;
    return Verdict::dropped;
  }
  if (!is_due(push)) return Verdict::rejoin;
  member.pending = push;
  member.came = ++pushes_;
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
  if (stop_ != train::StopReason::none) return std::nullopt;
  if (!options_.sync) return decide_on_one();
  int64_t with_data = 0;  // gradients received or still possible
  int64_t without = 0;    // members without data: at the end of a pass some have none
  Decision decision{version_ + 1, {}, 1};
  for (int i = 0; i < options_.members; ++i) {
    const Member& member = at(i);
    if (!counts(member)) continue;
    const bool nothing = complete(member) && member.pending->report.examples == 0;
    ++(nothing ? without : with_data);
    if (complete(member) && !nothing) {
      decision.contributors.push_back({i, member.incarnation, member.pending->sequence, 1});
    }
  }
  const int64_t expected = with_data + without;
  const int64_t pushes = options_.aggregate == 0 ? expected : std::min(expected, options_.aggregate);
  const int64_t enough = std::min(with_data, std::max<int64_t>(pushes - without, 1));
  if (expected == 0 || static_cast<int64_t>(decision.contributors.size()) < enough) return std::nullopt;
  decision.contributors.resize(static_cast<size_t>(enough));
  weigh(decision);
  return decision;
}

/// Sets the weights as the trainer weighs accumulated batches: means of batches count by their examples, relative to
/// the first.
void Coordinator::weigh(Decision& decision) const {
  const auto examples = [&](const Contributor& c) { return static_cast<float>(at(c.member).pending->report.examples); };
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
  if (options_.record) note_contribution(member, push);
  member.applied = push.sequence;
  member.answered = false;
  if (push.plan == plan_.id) {
    member.done += push.rounds;
  } else {
    member.reserved = {};
  }
  member.clock += static_cast<uint64_t>(push.rounds);
  member.latest_staleness = staleness;
  member.rounds += push.rounds;
  count_update(member.record, push, staleness);
  examples_ += push.report.examples;
  latest_.loss_sum += push.report.loss_sum;
  latest_.correct += push.report.correct;
  latest_.examples += push.report.examples;
}

/// The push that came first: with more workers than the server can serve, none waits for ever.
std::optional<Decision> Coordinator::decide_on_one() const {
  int first = -1;
  for (int i = 0; i < options_.members; ++i) {
    if (computes(at(i)) && complete(at(i)) && (first < 0 || at(i).came < at(first).came)) first = i;
  }
  if (first < 0) return std::nullopt;
  return Decision{version_ + 1, {{first, at(first).incarnation, at(first).pending->sequence, 1}}, 1};
}

void Coordinator::committed(const Decision& decision) {
  latest_ = {};
  contributions_.clear();
  if (options_.servers > 1) announced_.push_back(decision);
  if (options_.sync) {
    commit_round(decision);
  } else {
    commit_one(at(decision.contributors.front().member));
  }
  check_limit();
  if (options_.sync && (plan_is_old_ || shares_differ())) replan();
}

void Coordinator::commit_one(Member& member) {
  const Push push = *member.pending;
  member.pending.reset();
  count_applied(member, push, version_ - std::min(version_, push.base));
  ++version_;
}

void Coordinator::commit_round(const Decision& decision) {
  version_ = decision.version;
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
}

std::vector<int> Coordinator::awaited() const {
  std::vector<int> names;
  uint64_t slowest = UINT64_MAX;
  for (const Member& member : members_) {
    if (counts(member)) slowest = std::min(slowest, member.clock);
  }
  for (int i = 0; i < options_.members; ++i) {
    if (!counts(at(i))) continue;
    if (options_.sync ? !at(i).pending : at(i).clock == slowest) names.push_back(i);
  }
  return names;
}

std::vector<int> Coordinator::awaited_servers() const {
  std::vector<int> servers;
  for (int server = 1; server < options_.servers; ++server) {
    const bool lacks = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      if (!member.pending || !counts(member)) return false;
      const bool known = member.arriving == member.pending->sequence && !member.servers.empty();
      return !known || !member.servers[static_cast<size_t>(server)];
    });
    if (lacks) servers.push_back(server);
  }
  return servers;
}

bool Coordinator::may_go_on(int number) const {
  if (options_.sync || options_.max_staleness < 0 || stop_ != train::StopReason::none) return true;
  const Member& member = at(number);
  return std::all_of(members_.begin(), members_.end(), [&](const Member& other) {
    return !computes(other) || other.clock + static_cast<uint64_t>(options_.max_staleness) >= member.clock;
  });
}

void Coordinator::stop(train::StopReason reason) {
  if (stop_ == train::StopReason::none) stop_ = reason;
}

void Coordinator::check_limit() {
  if (options_.limit_steps > 0 && version_ >= options_.limit_steps) stop(train::StopReason::steps);
}

std::vector<int> Coordinator::unfinished() const {
  const bool stopping = stop_ != train::StopReason::none;
  std::vector<int> members;
  for (int i = 0; i < options_.members; ++i) {
    const Member& member = at(i);
    if (computes(member) || (!stopping && (counts(member) || member.wants_in))) members.push_back(i);
  }
  return members;
}

}  // namespace lockstep::ps
