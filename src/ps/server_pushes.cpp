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
  if (!session->staging) {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a push");
    size_t count = 0;
    for (const program::ParameterRange& range : ranges_) count += range.count;
    session->staging = std::make_shared<std::vector<float>>(count);
  }
  if (frame.header.sequence != session->coming) {
    session->coming = frame.header.sequence;
    session->staged = 0;
    session->coming_since = now();
    const base::MutexLock lock(mutex_);
    overwrite(session);
  }
  const size_t taken = take_elements(frame, *session->staging);
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
  const bool whole = session->staged == session->staging->size() || push.report.examples == 0;
  if (!whole || push.rounds < 1 || push.rounds > INT64_C(1) << 20 || !std::isfinite(end.gradient_scale())) {
    throw DataError(fmt::format("push {} of {} is invalid: {} of {} gradients for {} rounds", push.sequence,
                                session->hello.role(), session->staged, session->staging->size(), push.rounds));
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
  release(session);  // an incomplete snapshot
  const double since = now();
  double update = 0;  // seconds of it that making the version took
  WorkerHistory& record = coordinator_->record(push.member);
  record.wait_seconds += std::max(0.0, end.wait_seconds());
  record.busy_seconds += std::max(0.0, end.busy_seconds());
  const Verdict verdict = coordinator_->offer(push);
  const auto is_applied = [&]() LOCKSTEP_REQUIRES(mutex_) {
    return coordinator_->incarnation(push.member) == push.incarnation &&
           coordinator_->is_applied(push.member, push.sequence);
  };
  if (verdict == Verdict::accepted) {
    keep(session, push, end.gradient_scale());
    const uint64_t before = coordinator_->version();
    commit_if_ready();
    wait_until(session, [&] {
      mutex_.assert_held();
      const bool decided = job_->sync() ? coordinator_->version() > push.base : is_applied();
      return decided || coordinator_->stopped() != train::StopReason::none ||
             !coordinator_->takes_part(push.member, push.incarnation);
    });
    if (coordinator_->version() > before) update = update_seconds_;
    update += apply_booked(session);
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->may_go_on(push.member);
    });
  }
  wire::Reply reply = reply_for(push.member, push.plan);
  tell_wait(*session, reply, since, update);
  const bool applied = is_applied();
  reply.set_applied(applied);
  // Several batches cannot be computed again: a worker that lost them takes a new share.
  reply.set_rejoin(verdict == Verdict::rejoin || !coordinator_->takes_part(push.member, push.incarnation) ||
                   (!applied && push.rounds > 1));
  view = shard_->current();
  return reply;
}

wire::Reply Server::push_as_follower(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                     View& view) {
  const base::MutexLock lock(mutex_);
  const double since = now();
  double update = 0;
  const PushName name{push.incarnation, push.sequence};
  if (!follower_->is_applied(push.member, name)) {
    keep(session, push, end.gradient_scale());
    tell_received(push.member, name);
    const uint64_t before = follower_->version();
    apply_announced();
    wait_until(session, [&] {
      mutex_.assert_held();
      return job_->sync() ? follower_->version() > push.base : follower_->is_applied(push.member, name);
    });
    if (follower_->version() > before) update = update_seconds_;
    update += apply_booked(session);
  }
  view = shard_->current();
  wire::Reply reply;
  tell_wait(*session, reply, since, update);
  return reply;
}

}  // namespace lockstep::ps
