// How a parameter server handles a push.
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

}  // namespace

void Server::on_push(const SessionPtr& session, const transport::Frame& frame) {
  if (session->staging.empty()) {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a push");
    size_t count = 0;
    for (const program::ParameterRange& range : ranges_) count += range.count;
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
  session->received = now();
  times_.add(Stage::receive, session->received - session->coming_since);
  on_push_complete(session, frame);
}

void Server::on_push_complete(const SessionPtr& session, const transport::Frame& frame) {
  const auto end = parse<wire::PushEnd>(frame);
  const Push push = to_push(session->hello, frame.header, end);
  const bool whole = session->staged == session->staging.size() || push.report.examples == 0;
  if (!whole || push.rounds < 1 || push.rounds > INT64_C(1) << 20 || !std::isfinite(end.gradient_scale())) {
    throw DataError(fmt::format("push {} of {} is invalid: {} of {} gradients for {} rounds", push.sequence,
                                session->hello.role(), session->staged, session->staging.size(), push.rounds));
  }
  if (end.traced() && session->trace == nullptr) session->trace = trace_.borrow(session->hello.role());
  const bool traced = end.traced() && session->trace != nullptr;
  {
    const base::MutexLock lock(mutex_);
    session->traced = traced;
  }
  if (traced) trace_.received(*session->trace, push.sequence, session->coming_since, session->received);
  View view;
  wire::Reply reply =
      coordinates() ? push_as_coordinator(session, push, end, view) : push_as_follower(session, push, end, view);
  if (traced) reply.set_received_at(trace_.since_epoch(session->received));
  send_parameters(session, view, std::move(reply), push.sequence);
}

void Server::tell_wait(const Session& session, wire::Reply& reply, double since, double update) {
  const double ended = now();
  const double waited = std::max(0.0, ended - since - update);
  times_.add(Stage::wait, waited);
  // In sync the wait comes before the version is made, otherwise after.
  const double end = job_->sync() ? since + waited : ended;
  if (session.traced) trace_.waited(*session.trace, session.coming, end - waited, end);
  reply.set_waited_seconds(waited);
}

wire::Reply Server::push_as_coordinator(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                        View& view) {
  const base::MutexLock lock(mutex_);
  release(session);  // ends a hold whose snapshot it could not complete
  const double since = now();
  double update = 0;  // part of the wait in which the version was made
  wait_until(session, [&] {
    mutex_.assert_held();
    return held_ == 0 || may_apply(push);
  });
  WorkerHistory& record = coordinator_->record(push.member);
  record.wait_seconds += std::max(0.0, end.wait_seconds());
  record.busy_seconds += std::max(0.0, end.busy_seconds());
  const Verdict verdict = coordinator_->offer(push);
  if (verdict == Verdict::accepted && coordinator_->options().sync) {
    session->sequence = push.sequence;
    const uint64_t before = coordinator_->version();
    commit_if_ready();
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->version() > push.base || coordinator_->stopped() != train::StopReason::none ||
             !coordinator_->takes_part(push.member, push.incarnation);
    });
    if (coordinator_->version() > before) update = update_seconds_;
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
  wire::Reply reply = reply_for(push.member, push.plan);
  tell_wait(*session, reply, since, update);
  const bool applied = coordinator_->is_applied(push.member, push.sequence);
  reply.set_applied(applied);
  // With several batches none can be computed again, so a worker that lost them takes a new share.
  reply.set_rejoin(verdict == Verdict::rejoin || !coordinator_->takes_part(push.member, push.incarnation) ||
                   (!applied && push.rounds > 1));
  view = shard_->current();
  return reply;
}

/// Lock-free: other threads change the same memory at the same time.
void Server::apply_in_place(const SessionPtr& session, float scale) {
  if (!job_->lock_free()) return;
  const std::shared_ptr<ParameterShard> shard = shard_;
  const uint64_t version = shard->version();
  const optim::Update update{version, optim::learning_rate(rules_.schedule, version), scale};
  mutex_.unlock();
  const double began = now();
  shard->apply_in_place(session->staging, update);
  const double ended = now();
  times_.add(Stage::apply, ended - began);
  mutex_.lock();
  if (session->traced) trace_.applied(*session->trace, session->hello, session->coming, began, ended);
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
    const uint64_t before = shard_->current().version;
    apply_orders(false);
    wait_until(session, [&] {
      mutex_.assert_held();
      return shard_->current().version > push.base;
    });
    if (shard_->current().version > before) update = update_seconds_;
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
  tell_wait(*session, reply, since, update);
  return reply;
}

}  // namespace lockstep::ps
