// A parameter server's updates: pushes, versions, commits.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {
namespace {

Push to_push(const wire::Hello& hello, const transport::Header& header, const wire::PushEnd& end) {
  Push push;
  push.member = hello.member();
  push.incarnation = hello.incarnation();
  push.sequence = header.sequence;
  push.base = header.version;
  push.plan = end.plan();
  push.rounds = end.rounds();
  push.report = {end.loss_sum(), end.correct(), end.examples()};
  return push;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

void Server::on_push(const SessionPtr& session, const transport::Frame& frame) {
  if (session->staging.empty()) {
    const base::MutexLock lock(mutex_);
    // A server that lost its state gets a new one from the chief, which must be free to send it.
    if (!initialised_ && session->hello.member() == 0) throw DataError("a push before the first parameters");
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_;
    });
    size_t count = 0;
    for (const graph::ParameterRange& range : ranges_) count += range.count;
    session->staging.resize(count);
  }
  if (frame.header.sequence != session->coming) {
    session->coming = frame.header.sequence;
    session->staged = 0;
    session->coming_since = now();
    const base::MutexLock lock(mutex_);
    session->sequence = 0;
  }
  const size_t taken = take_elements(frame, session->staging);
  session->staged += taken;
  bytes_staged_.fetch_add(taken * sizeof(float), std::memory_order_relaxed);
  if ((frame.header.flags & kLast) == 0) return;
  times_.add(Stage::receive, now() - session->coming_since);
  on_push_complete(session, frame);
}

void Server::on_push_complete(const SessionPtr& session, const transport::Frame& frame) {
  const auto end = parse<wire::PushEnd>(frame);
  const Push push = to_push(session->hello, frame.header, end);
  const bool whole = session->staged == session->staging.size() || push.report.examples == 0;
  if (!whole || push.rounds < 1 || push.rounds > INT64_C(1) << 20 || !std::isfinite(end.gradient_scale())) {
    throw DataError(fmt::format("push {} of {}: {} of {} gradients for {} rounds", push.sequence, session->hello.role(),
                                session->staged, session->staging.size(), push.rounds));
  }
  View view;
  wire::Reply reply =
      coordinates() ? push_as_coordinator(session, push, end, view) : push_as_follower(session, push, end, view);
  send_parameters(session, view, reply, push.sequence);
}

std::string Server::ledger_bytes() {
  wire::Ledger ledger;
  if (coordinator_) {
    coordinator_->save(ledger, now());
  } else {
    for (const auto& [member, applied] : applied_) {
      while (ledger.members_size() <= member) ledger.add_members();
      ledger.mutable_members(member)->set_incarnation(applied.first);
      ledger.mutable_members(member)->set_applied(applied.second);
    }
  }
  ledger.set_generation(generation_);
  return ledger.SerializeAsString();
}

/// One that does not fit is this server's trouble, not a peer's: it ends with a line.
std::string Server::checked_ledger() {
  std::string ledger = ledger_bytes();
  if (ledger.size() <= kMostLedgerBytes) return ledger;
  throw IoError(
      fmt::format("the record of the data takes {} bytes, more than the {} that there are: the shares of an epoch "
                  "are in too many pieces; a larger batch makes fewer",
                  ledger.size(), kMostLedgerBytes));
}

void Server::record_contributions() {
  if (!options_.contributions) return;
  if (!contributions_) contributions_.emplace(options_.folder + "/contributions.csv");
  contributions_->add(coordinator_->version(), coordinator_->contributions());
}

void Server::apply_one(const SessionPtr& session, const Push& push, float scale) {
  const View before = shard_->current();
  const optim::Update update{before.version, optim::learning_rate(rules_.schedule, before.version), scale};
  if (coordinator_) {
    coordinator_->applied(push);
    record_contributions();
  } else {
    applied_[push.member] = {push.incarnation, push.sequence};
  }
  ++pushes_;
  const double began = now();
  const std::string ledger = checked_ledger();
  if (job_->lock_free()) {  // it was applied in place
    shard_->commit_ledger(bytes_of(ledger));
    times_.add(Stage::store, now() - began);
    return;
  }
  const double written = now() - began;
  const Contribution contribution{session->staging, 1};
  shard_->apply({&contribution, 1}, 1, update, bytes_of(ledger));
  count_update(began, written + shard_->commit_seconds());
}

void Server::count_update(double began, double stored) {
  update_seconds_ = now() - began;
  times_.add(Stage::apply, update_seconds_ - stored);
  times_.add(Stage::store, stored);
}

void Server::tell_wait(wire::Reply& reply, double since, double update) {
  const double waited = std::max(0.0, now() - since - update);
  times_.add(Stage::wait, waited);
  reply.set_waited_seconds(waited);
}

wire::Reply Server::reply_for(int member) {
  wire::Reply reply;
  reply.set_stop(static_cast<uint32_t>(coordinator_->stopped()));
  const uint64_t version = coordinator_->version();
  reply.set_learning_rate(optim::learning_rate(rules_.schedule, version == 0 ? 0 : version - 1));
  reply.set_gradient_norm(gradient_norm_);
  const exchange::BatchReport& latest = coordinator_->latest();
  reply.set_examples(latest.examples);
  reply.set_loss_sum(latest.loss_sum);
  reply.set_correct(latest.correct);
  reply.set_examples_total(coordinator_->examples());
  reply.set_staleness(coordinator_->latest_staleness(member));
  if (const std::optional<data::Plan> plan = coordinator_->news(member)) {
    to_wire(*plan, *reply.mutable_plan());
    reply.mutable_plan()->set_batches_per_update(coordinator_->batches_per_update(member));
  }
  return reply;
}

wire::Reply Server::push_as_coordinator(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                        View& view) {
  const base::MutexLock lock(mutex_);
  release(session);  // of a snapshot that it could not complete
  const double since = now();
  double update = 0;  // of that, what making the version took
  wait_until(session, [&] {
    mutex_.assert_held();
    return held_ == 0 || may_apply(push);
  });
  MemberRecord& record = coordinator_->record(push.member);
  record.wait_seconds += std::max(0.0, end.wait_seconds());
  record.busy_seconds += std::max(0.0, end.busy_seconds());
  const Verdict verdict = coordinator_->offer(push);
  if (verdict == Verdict::accepted && coordinator_->options().sync) {
    session->sequence = push.sequence;
    commit_if_ready();
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->version() > push.base || coordinator_->stopped() != train::StopReason::none ||
             !coordinator_->takes_part(push.member, push.incarnation);
    });
    update = update_seconds_;
  } else if (verdict == Verdict::accepted) {
    const double began = now();
    apply_in_place(session, end.gradient_scale());
    apply_one(session, push, end.gradient_scale());
    update = now() - began;
    changed_.notify_all();
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->may_go_on(push.member);
    });
  }
  wire::Reply reply = reply_for(push.member);
  tell_wait(reply, since, update);
  const bool applied = coordinator_->is_applied(push.member, push.sequence);
  reply.set_applied(applied);
  // Of several batches none can be computed again: whoever lost them takes a new share.
  reply.set_rejoin(verdict == Verdict::rejoin || !coordinator_->takes_part(push.member, push.incarnation) ||
                   (!applied && push.rounds > 1));
  view = shard_->current();
  return reply;
}

/// Lock-free: others change the same memory at the same time.
void Server::apply_in_place(const SessionPtr& session, float scale) {
  if (!job_->lock_free()) return;
  const std::shared_ptr<Shard> shard = shard_;
  const uint64_t version = shard->version();
  const optim::Update update{version, optim::learning_rate(rules_.schedule, version), scale};
  mutex_.unlock();
  const double began = now();
  shard->apply_in_place(session->staging, update);
  times_.add(Stage::apply, now() - began);
  mutex_.lock();
}

wire::Reply Server::push_as_follower(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                     View& view) {
  const base::MutexLock lock(mutex_);
  release(session);
  const double since = now();
  double update = 0;
  wait_until(session, [&] {
    mutex_.assert_held();
    return held_ == 0 || may_apply(push);
  });
  if (job_->sync()) {
    session->sequence = push.sequence;
    tell_received(*session);
    apply_orders(false);
    wait_until(session, [&] {
      mutex_.assert_held();
      return shard_->current().version > push.base;
    });
    update = update_seconds_;
  } else {
    const double began = now();
    const auto& [incarnation, applied] = applied_[push.member];
    if (incarnation != push.incarnation || applied < push.sequence) {
      apply_in_place(session, end.gradient_scale());
      apply_one(session, push, end.gradient_scale());
    }
    update = now() - began;
    changed_.notify_all();
  }
  view = shard_->current();
  wire::Reply reply;
  tell_wait(reply, since, update);
  return reply;
}

void Server::tell_received(const Session& session) {
  if (coordinator_stream_ == nullptr || session.sequence == 0) return;
  transport::Header told = header(Kind::received);
  told.offset = static_cast<uint64_t>(session.hello.member());
  told.extra = session.hello.incarnation();
  told.sequence = session.sequence;
  static_cast<void>(coordinator_stream_->write(told));
}

void Server::tell_received_again() {
  for (const auto& [member, session] : sessions_) tell_received(*session);
}

void Server::commit_if_ready() {
  if (!coordinator_ || held_ > 0 || !initialised_) return;
  while (const std::optional<Decision> decision = coordinator_->decide()) {
    if (!apply_decision(*decision, false)) return;
    version_since_ = now();
    warned_ = false;
    wire::Commit commit;
    to_wire(*decision, commit);
    if (coordinator_->options().servers > 1) {
      peers_.send(header(Kind::commit), &commit, [](const Peer& peer) { return peer.role.starts_with("ps:"); });
    }
  }
  changed_.notify_all();
}

bool Server::apply_decision(const Decision& decision, bool without_missing) {
  std::vector<Contribution> contributions;
  for (const Contributor& contributor : decision.contributors) {
    const auto found = sessions_.find(contributor.member);
    const bool here = found != sessions_.end() && found->second->sequence == contributor.sequence &&
                      found->second->hello.incarnation() == contributor.incarnation;
    if (here) {
      contributions.push_back({found->second->staging, contributor.weight});
    } else if (!without_missing) {
      return false;
    } else {
      log("warning", fmt::format("step {}: the gradient of {} is lost; ps:{} goes on without it", decision.version,
                                 member_name(contributor.member), options_.index));
    }
  }
  const double began = now();
  const uint64_t version = decision.version - 1;
  optim::Update update{version, optim::learning_rate(rules_.schedule, version), 1};
  gradient_norm_ = std::numeric_limits<float>::quiet_NaN();
  if (rules_.clip_norm > 0 && !contributions.empty()) {
    constexpr double kTiny = 1e-6;
    const double norm = std::sqrt(shard_->sum_of_squares(contributions, decision.mean_scale));
    gradient_norm_ = static_cast<float>(norm);
    update.gradient_scale = static_cast<float>(std::min(1.0, static_cast<double>(rules_.clip_norm) / (norm + kTiny)));
  }
  pushes_ += decision.contributors.size();
  if (coordinator_) {
    coordinator_->committed(decision);
    record_contributions();
  }
  const double before = now();
  const std::string ledger = checked_ledger();
  double stored = now() - before;
  if (contributions.empty()) {
    const View same = shard_->current();
    shard_->initialise(decision.version, same.parameters, same.slots, bytes_of(ledger));
  } else {
    shard_->apply(contributions, decision.mean_scale, update, bytes_of(ledger));
    stored += shard_->commit_seconds();
  }
  count_update(began, stored);
  return true;
}

void Server::apply_orders(bool without_missing) {
  while (!orders_.empty() && initialised_ && held_ == 0) {
    const uint64_t version = shard_->current().version;
    const Decision& order = orders_.front();
    if (order.version > version && !apply_decision(order, without_missing)) return;
    orders_.pop_front();
    order_since_ = now();
    changed_.notify_all();
  }
}

void Server::send_parameters(const SessionPtr& session, const View& view, const wire::Reply& reply, uint64_t sequence) {
  transport::Header first = header(Kind::parameters);
  first.version = view.version;
  first.sequence = sequence;
  Element element = Element::kFloat32;
  {
    const base::MutexLock lock(mutex_);
    element = static_cast<Element>(job_->wire());
  }
  const double began = now();
  static_cast<void>(send_elements(session->stream, first, view.parameters, element, view.hold, &reply));
  times_.add(Stage::send, now() - began);
}

void Server::count_lost(const transport::Header& join) {
  const bool of_before = join.extra > 0 && join.extra < generation_;
  if (!of_before || join.version <= began_at_ + lost_) return;
  lost_ = join.version - began_at_;
  log("warning", fmt::format("{} steps after step {} are lost", lost_, began_at_));
}

void Server::on_join(const SessionPtr& session, const transport::Frame& frame) {
  View view;
  wire::Reply reply;
  {
    const base::MutexLock lock(mutex_);
    const int member = session->hello.member();
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_;
    });
    count_lost(frame.header);
    coordinator_->join(member, session->hello.incarnation());
    commit_if_ready();
    changed_.notify_all();
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->takes_part(member, session->hello.incarnation()) ||
             coordinator_->stopped() != train::StopReason::none;
    });
    reply = reply_for(member);
    reply.set_generation(generation_);
    view = shard_->current();
  }
  send_parameters(session, view, reply, 0);
}

void Server::on_pull(const SessionPtr& session, const transport::Frame& frame) {
  View view;
  {
    const base::MutexLock lock(mutex_);
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_ && shard_->current().version >= frame.header.version;
    });
    view = shard_->current();
  }
  send_parameters(session, view, {}, 0);
}

}  // namespace lockstep::ps
