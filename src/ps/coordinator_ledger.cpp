// The coordinator's ledger: saved with every version, read to resume.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "ps/coordinator.h"
#include "ps/messages.h"

namespace lockstep::ps {
namespace {

constexpr double kReturnWait = 15;  ///< seconds that the members of a ledger have to rejoin
constexpr int64_t kMostRounds = INT64_C(1) << 40;

}  // namespace

WorkerHistory record_of(const wire::MemberState& saved) {
  WorkerHistory record;
  record.iterations = saved.iterations();
  record.examples = saved.examples();
  record.updates = saved.updates();
  record.dropped = saved.dropped();
  record.joins = saved.joins();
  record.finished_seconds = saved.finished_seconds();
  record.staleness.assign(saved.staleness().begin(), saved.staleness().end());
  record.staleness_sum = saved.staleness_sum();
  record.staleness_max = saved.staleness_max();
  record.wait_seconds = saved.wait_seconds();
  record.busy_seconds = saved.busy_seconds();
  record.loss = saved.loss();
  record.accuracy = saved.accuracy();
  return record;
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
  plan_.shard = {0, options.sharded ? std::clamp(ledger.plan_count(), 1, options.members) : 1};
  latest_ = {ledger.loss_sum(), ledger.correct(), ledger.latest_examples()};
  for (const wire::Commit& commit : ledger.announced()) announced_.push_back(from_wire(commit));
  if (ledger.has_commit() && options.servers > 1) announced_.push_back(from_wire(ledger.commit()));
  const uint64_t reached = announced_.empty() ? version_ : announced_.front().version - 1;
  reached_.assign(static_cast<size_t>(options.servers), reached);
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
  if (member.place >= plan_.shard.count && options_.sharded)
    throw DataError(fmt::format("ledger: place {} is out of range", member.place));
  if (member.done < 0 || member.done > kMostRounds)
    throw DataError(fmt::format("ledger: {} rounds done are out of range", member.done));
  for (const wire::PassPart& part : saved.reserved()) member.reserved.parts.push_back(from_wire(part));
  member.record = record_of(saved);
  member.rounds = std::max<int64_t>(saved.rounds(), 0);
}

void Coordinator::save_member(const Member& member, wire::MemberState& saved) const {
  saved.set_presence(static_cast<uint32_t>(member.presence));
  saved.set_finished(member.finished);
  saved.set_incarnation(member.incarnation);
  saved.set_applied(member.applied);
  saved.set_clock(member.clock);
  saved.set_place(member.place);
  saved.set_done(member.done);
  for (const data::PassPart& part : member.reserved.parts) to_wire(part, *saved.add_reserved());
  const WorkerHistory& record = member.record;
  saved.set_iterations(record.iterations);
  saved.set_examples(record.examples);
  saved.set_updates(record.updates);
  saved.set_dropped(record.dropped);
  saved.set_joins(record.joins);
  saved.set_finished_seconds(record.finished_seconds);
  for (const uint64_t count : record.staleness) saved.add_staleness(count);
  saved.set_staleness_sum(record.staleness_sum);
  saved.set_staleness_max(record.staleness_max);
  saved.set_rounds(member.rounds);
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
  ledger.set_latest_examples(latest_.examples);
  for (const Decision& decision : announced_) to_wire(decision, *ledger.add_announced());
  for (const Member& member : members_) save_member(member, *ledger.add_members());
}

void Coordinator::reached(int server, uint64_t version) {
  uint64_t& known = reached_[static_cast<size_t>(server)];
  known = std::max(known, std::min(version, version_));
  const uint64_t all = *std::min_element(reached_.begin() + 1, reached_.end());
  while (!announced_.empty() && announced_.front().version <= all) announced_.pop_front();
}

std::optional<std::vector<Decision>> Coordinator::missed(uint64_t version) const {
  const uint64_t before = announced_.empty() ? version_ : announced_.front().version - 1;
  if (version < before || version > version_) return std::nullopt;
  std::vector<Decision> missed(announced_.begin() + static_cast<ptrdiff_t>(version - before), announced_.end());
  for (Decision& decision : missed) {
    for (Contributor& c : decision.contributors) c.replaced = at(c.member).incarnation != c.incarnation;
  }
  return missed;
}

}  // namespace lockstep::ps
