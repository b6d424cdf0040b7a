// A parameter server's other requests: the first parameters, snapshots, leaving and the end.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "lockstep/error.h"
#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {
namespace {

constexpr double kPushOnItsWay = 5;  ///< seconds
// Kept for an evaluator that is slower than the checkpoints.
constexpr size_t kMostSnapshots = 64;
constexpr size_t kMostSnapshotBytes = size_t{1} << 30;

bool is_goal(train::StopReason reason) {
  return reason == train::StopReason::accuracy || reason == train::StopReason::loss;
}

size_t count_of(const std::vector<program::ParameterRange>& ranges) {
  size_t count = 0;
  for (const program::ParameterRange& range : ranges) count += range.count;
  return count;
}

/// A file of state belongs to this job's parameters alone.
uint64_t identity_of(const wire::JobConfig& job) {
  uint64_t hash = base::hashed(base::kDigestStart, job.job());
  const auto add = [&hash](uint64_t value) { hash = base::hashed(hash, value); };
  add(job.parameters());
  add(job.optimizer().method());
  for (const wire::Range& range : job.ranges()) {
    add(range.offset());
    add(range.count());
  }
  return hash;
}

}  // namespace

bool has_state(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/state", ignored) && std::filesystem::exists(folder + "/job", ignored);
}

CoordinatorOptions Server::rules_of(const wire::JobConfig& job) const {
  CoordinatorOptions options = coordinator_options(job);
  options.record = options_.contributions;
  return options;
}

void Server::adopt(const wire::JobConfig& job) {
  check(job);
  job_ = job;
  rules_ = from_wire(job.optimizer());
  ranges_ = ranges_of(job.ranges());
  generation_ = job.generation();
  ParameterShardOptions shard;
  shard.optimizer = rules_.optimizer;
  shard.parameters = count_of(ranges_);
  shard.durability = options_.durability;
  shard.file = state_file();
  shard.identity = identity_of(job);
  shard.ledger_bytes = kMostLedgerBytes;
  shard.threads = options_.threads;
  shard_ = std::make_shared<ParameterShard>(shard);
}

/// Of a run that is resumed: the newest checkpoint is what it has then.
void Server::leave_state(const std::string& why) {
  log("warning",
      fmt::format("ps:{} cannot go on with its state: {}; training goes on from a checkpoint", options_.index, why));
  std::filesystem::remove(state_file());
  std::filesystem::remove(job_file());
}

/// After a restart: what the folder holds, if anything.
void Server::take_over_state() {
  const base::MutexLock lock(mutex_);
  if (options_.durability == Durability::checkpoint || !has_state(options_.folder)) return;
  wire::JobConfig job;
  const std::vector<uint8_t> bytes = base::read_file(job_file(), size_t{64} << 20);
  if (!job.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataError(job_file() + ": not the description of a job");
  }
  if (job.job() != options_.job && options_.resumed) return leave_state("it is of other settings");
  if (job.job() != options_.job) {
    throw UsageError(fmt::format("{}: the state in it is of other settings; give another --run-dir", options_.folder));
  }
  try {
    adopt(job);
  } catch (const DataError& error) {
    if (!options_.resumed) throw;
    job_.reset();
    return leave_state(error.what());
  }
  if (!shard_->initialised()) {
    shard_.reset();
    job_.reset();
    return;
  }
  const View view = shard_->current();
  wire::Ledger ledger;
  if (!ledger.ParseFromArray(view.ledger.data(), static_cast<int>(view.ledger.size()))) {
    throw DataError(state_file() + ": damaged ledger");
  }
  if (coordinates()) {
    ledger.set_version(view.version);
    coordinator_ = std::make_unique<Coordinator>(rules_of(job), ledger, now());
  } else {
    for (int i = 0; i < ledger.members_size(); ++i) {
      applied_[i] = {ledger.members(i).incarnation(), ledger.members(i).applied()};
    }
  }
  initialised_ = true;
  version_since_ = now();
  log("info", fmt::format("ps:{} is back at step {} with all that it had acknowledged", options_.index, view.version));
}

void Server::on_init(const SessionPtr& session, const transport::Frame& frame) {
  if (kind_of(frame) == Kind::init_begin) return begin_init(session, parse<wire::JobConfig>(frame));
  if (kind_of(frame) == Kind::init_end) return end_init(session, frame);
  const base::MutexLock lock(mutex_);
  if (!coming_ || frame.header.extra >= coming_values_.size()) throw DataError("parameters that were not announced");
  // In order, so that nothing is missing at the end, and memory grows with what has really come.
  std::vector<float>& values = coming_values_[frame.header.extra];
  const size_t count = count_of(ranges_of(coming_->ranges()));
  const transport::Header& h = frame.header;
  if (h.offset != values.size() || h.count > count - values.size()) {
    throw DataError(fmt::format("first parameters {}+{} of {} after {}", h.offset, h.count, count, values.size()));
  }
  check_elements(frame);
  values.resize(values.size() + h.count);
  take_elements(frame, values);
}

void Server::begin_init(const SessionPtr& session, const wire::JobConfig& job) {
  check(job);
  if (job.job() != session->hello.job() || job.members() != static_cast<int>(options_.spec.members().size()) ||
      job.servers() != static_cast<int>(options_.spec.ps.size())) {
    throw DataError(fmt::format("a job of {} members and {} servers; this cluster has {} and {}", job.members(),
                                job.servers(), options_.spec.members().size(), options_.spec.ps.size()));
  }
  const base::MutexLock lock(mutex_);
  coming_ = job;
  const int slots = optim::state_slots(from_wire(job.optimizer()).optimizer.method);
  coming_values_.assign(static_cast<size_t>(slots) + 1, {});
}

void Server::end_init(const SessionPtr& session, const transport::Frame& frame) {
  const auto ledger = parse<wire::Ledger>(frame);
  const base::MutexLock lock(mutex_);
  if (!coming_) throw DataError("the end of parameters that were not announced");
  const wire::JobConfig job = *coming_;
  const std::vector<std::vector<float>> values = std::move(coming_values_);
  coming_.reset();
  coming_values_.clear();
  const size_t count = count_of(ranges_of(job.ranges()));
  const auto whole = [&](const std::vector<float>& array) { return array.size() == count; };
  const bool no_slots = std::all_of(values.begin() + 1, values.end(), [](const auto& array) { return array.empty(); });
  if (!whole(values.front()) || !(no_slots || std::all_of(values.begin(), values.end(), whole))) {
    throw DataError(fmt::format("{} of {} first parameters came", values.front().size(), count));
  }
  // Made before anything is given up: it throws where the data makes no sense.
  std::unique_ptr<Coordinator> coordinator;
  if (coordinates()) {
    const data::Remainder data = from_wire(ledger.plan());
    coordinator = std::make_unique<Coordinator>(rules_of(job), frame.header.version, data, now());
    coordinator->set_examples(ledger.examples());
  }
  // The state of before is another generation's: a new file, so that nothing of it can be taken for this one's.
  initialised_ = false;
  shard_.reset();
  std::error_code ignored;
  std::filesystem::remove(state_file(), ignored);
  base::write_whole_file(job_file(), job.SerializeAsString());
  adopt(job);
  applied_.clear();
  orders_.clear();
  for (const auto& [member, other] : sessions_) {
    if (other == session || other->told_generation == 0) {  // it waits for the first parameters, which these are
      other->told_generation = generation_;
      continue;
    }
    other->given_up = true;
    other->stream.cancel("the parameters were set anew");
  }
  // A goal that was met stays met; other reasons to stop are found again where they still hold.
  if (coordinator_ && is_goal(coordinator_->stopped())) coordinator->stop(coordinator_->stopped());
  coordinator_ = std::move(coordinator);
  std::vector<std::span<const float>> slots;
  if (!no_slots) slots.assign(values.begin() + 1, values.end());
  const std::string bytes = ledger_bytes();
  shard_->initialise(frame.header.version, values.front(), slots, std::as_bytes(std::span(bytes)));
  initialised_ = true;
  began_at_ = frame.header.version;
  lost_ = 0;
  server_lost_state_ = false;
  version_since_ = now();
  changed_.notify_all();
  static_cast<void>(session->stream.write(header(Kind::ok)));
}

void Server::on_leave(const SessionPtr& session, const transport::Frame& frame) {
  const auto leave = parse<wire::Leave>(frame);
  if (leave.stop() > static_cast<uint32_t>(train::StopReason::error) || leave.rounds() < 0) {
    throw DataError(fmt::format("leaving for reason {} after {} rounds", leave.stop(), leave.rounds()));
  }
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "leaving");
    const int member = session->hello.member();
    WorkerHistory& record = coordinator_->record(member);
    record.loss = leave.loss();
    record.accuracy = leave.accuracy();
    coordinator_->finish(member, session->hello.incarnation(), static_cast<train::StopReason>(leave.stop()),
                         leave.rounds(), now());
    commit_if_ready();
    changed_.notify_all();
  }
  static_cast<void>(session->stream.write(header(Kind::ok)));
}

void Server::on_wait_end(const SessionPtr& session) {
  const int member = session->hello.member();
  bool again = false;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "waiting for the end");
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->all_done() || coordinator_->needed_again(member) || (member == 0 && server_lost_state_);
    });
    // The chief has another duty where a server lost what it held.
    again = !coordinator_->all_done() || (member == 0 && server_lost_state_);
    coordinator_->save(*end.mutable_ledger(), now());
    end.set_version(coordinator_->version());
  }
  transport::Header answer = header(Kind::snapshot_end);
  answer.flags = again ? kLast : 0;
  static_cast<void>(send(session->stream, answer, end));
}

/// Written down at once: no version follows that would carry it.
void Server::on_stop(const SessionPtr& session, train::StopReason reason) {
  const base::MutexLock lock(mutex_);
  wait_until(session, [&] {
    mutex_.assert_held();
    return initialised_;
  });
  coordinator_->stop(reason);
  const std::string ledger = checked_ledger();
  shard_->commit_ledger(std::as_bytes(std::span(ledger)));
  changed_.notify_all();
}

void Server::release(const SessionPtr& session) {
  if (!session->holds) return;
  session->holds = false;
  if (--held_ == 0) wanted_.clear();
  commit_if_ready();
  apply_orders(false);
  changed_.notify_all();
}

std::map<int, std::pair<uint64_t, uint64_t>> Server::applied_here() {
  if (!coordinator_) return applied_;
  std::map<int, std::pair<uint64_t, uint64_t>> applied;
  for (int i = 0; i < coordinator_->options().members; ++i) {
    applied[i] = {coordinator_->incarnation(i), coordinator_->applied_sequence(i)};
  }
  return applied;
}

bool Server::may_apply(const Push& push) const {
  const auto wanted = wanted_.find(push.member);
  return wanted != wanted_.end() && wanted->second.first == push.incarnation && push.sequence <= wanted->second.second;
}

void Server::on_hold(const SessionPtr& session) {
  wire::Snapshot held;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a snapshot");
    if (!session->holds) ++held_;
    session->holds = true;
    for (const auto& [member, applied] : applied_here()) {
      while (held.ledger().members_size() <= member) held.mutable_ledger()->add_members();
      held.mutable_ledger()->mutable_members(member)->set_incarnation(applied.first);
      held.mutable_ledger()->mutable_members(member)->set_applied(applied.second);
    }
    held.set_version(shard_->version());
  }
  static_cast<void>(send(session->stream, header(Kind::snapshot_end), held));
}

void Server::on_snapshot(const SessionPtr& session, const transport::Frame& frame) {
  const auto wanted = parse<wire::Ledger>(frame);
  View view;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    for (int i = 0; i < wanted.members_size(); ++i) {
      wanted_[i] = {wanted.members(i).incarnation(), wanted.members(i).applied()};
    }
    changed_.notify_all();
    // A push that another server has is on its way here, unless its worker died just now.
    const bool stopped = coordinator_ && coordinator_->stopped() != train::StopReason::none;
    const double patience = now() + (stopped ? 0 : kPushOnItsWay);  // after a stop none is accepted any more
    const auto have_all = [&] {
      mutex_.assert_held();
      const auto applied = applied_here();
      return std::all_of(wanted_.begin(), wanted_.end(), [&](const auto& push) {
        const auto found = applied.find(push.first);
        return found == applied.end() || found->second.first != push.second.first ||
               found->second.second >= push.second.second;
      });
    };
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_ && shard_->version() >= frame.header.version;
    });
    wait_until(session, [&] {
      mutex_.assert_held();
      return have_all() || now() > patience;
    });
    view = shard_->current();
    if (coordinator_) {
      coordinator_->save(*end.mutable_ledger(), now());
      to_wire(coordinator_->remaining(), *end.mutable_remaining());
    }
    end.set_version(view.version);
    keep_for_evaluator(frame.header.sequence == 0 ? view.version : frame.header.sequence, view);
  }
  send_state(session, view, end);
}

/// A copy: held Views would keep buffers from being used again for as long as the evaluator takes.
void Server::keep_for_evaluator(uint64_t id, const View& view) {
  const bool evaluator = !options_.spec.evaluator.empty() || evaluator_came_;
  if (!evaluator || (!snapshots_.empty() && snapshots_.back().id >= id)) return;
  snapshots_.push_back(
      {id, std::make_shared<const std::vector<float>>(view.parameters.begin(), view.parameters.end())});
  const size_t most = std::min(kMostSnapshots, kMostSnapshotBytes / std::max<size_t>(view.parameters.size_bytes(), 1));
  while (snapshots_.size() > std::max<size_t>(most, 2)) snapshots_.pop_front();
  changed_.notify_all();
}

void Server::on_follow(const SessionPtr& session, const transport::Frame& frame) {
  Kept kept;
  {
    const base::MutexLock lock(mutex_);
    evaluator_came_ = true;  // it may be outside the cluster's map
    const uint64_t id = frame.header.version;
    const bool exact = (frame.header.flags & kExact) != 0;
    const auto older = [&](const Kept& k) { return exact ? k.id < id : k.id <= id; };
    while (!snapshots_.empty() && older(snapshots_.front())) snapshots_.pop_front();
    wait_until(session, [&] {
      mutex_.assert_held();
      return !snapshots_.empty() || finishing_;
    });
    if (snapshots_.empty()) {
      evaluator_knows_end_ = true;
      static_cast<void>(session->stream.write(header(Kind::end)));
      return;
    }
    kept = snapshots_.front();
    snapshot_taken_ = std::max(snapshot_taken_, kept.id);
  }
  transport::Header part = header(Kind::state);
  if (!send_elements(session->stream, part, *kept.parameters, Element::kFloat32, kept.parameters, nullptr)) return;
  transport::Header last = header(Kind::snapshot_end);
  last.version = kept.id;
  static_cast<void>(session->stream.write(last));
}

void Server::send_state(const SessionPtr& session, const View& view, const wire::Snapshot& end) {
  transport::Header part = header(Kind::state);
  part.version = view.version;
  if (!send_elements(session->stream, part, view.parameters, Element::kFloat32, view.hold, nullptr)) return;
  for (size_t i = 0; i < view.slots.size(); ++i) {
    part.extra = i + 1;
    if (!send_elements(session->stream, part, view.slots[i], Element::kFloat32, view.hold, nullptr)) return;
  }
  transport::Header last = header(Kind::snapshot_end);
  last.version = view.version;
  static_cast<void>(send(session->stream, last, end));
}

}  // namespace lockstep::ps
