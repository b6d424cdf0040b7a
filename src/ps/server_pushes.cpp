// How a parameter server handles a push.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"

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

void Server::begin_staging(Session& session, const transport::Frame& frame) {
  wait_for_parameters(session, "a push", [this, &session, frame] {
    mutex_.assert_held();
    size_t count = 0;
    for (const wire::Range& range : job_.config().ranges()) count += range.count();
    session.staging = std::make_shared<std::vector<float>>(count);
    session.again = frame;
  });
  go_on(session);
}

void Server::on_push(Session& session, const transport::Frame& frame) {
  if (!session.staging) {
    const base::MutexLock lock(mutex_);
    return begin_staging(session, frame);
  }
  if (frame.header.sequence != session.coming) {
    session.coming = frame.header.sequence;
    session.staged = 0;
    session.coming_since = now();
    const base::MutexLock lock(mutex_);
    job_.overwrite(session.id);
  }
  const size_t taken = take_elements(frame, *session.staging);
  session.staged += taken;
  bytes_staged_.fetch_add(taken * sizeof(float), std::memory_order_relaxed);
  if ((frame.header.flags & kLast) == 0) return;
  session.received = now();
  times_.add(Stage::receive, session.received - session.coming_since);
  on_push_complete(session, frame);
}

void Server::on_push_complete(Session& session, const transport::Frame& frame) {
  const auto end = parse<wire::PushEnd>(frame);
  const Push push = to_push(session.hello, frame.header, end);
  const bool whole = session.staged == session.staging->size() || push.report.examples == 0;
  if (!whole || push.rounds < 1 || push.rounds > INT64_C(1) << 20 || !std::isfinite(end.gradient_scale())) {
    throw DataError(fmt::format("push {} of {} is invalid: {} of {} gradients for {} rounds", push.sequence,
                                session.hello.role(), session.staged, session.staging->size(), push.rounds));
  }
  if (end.traced() && session.trace == nullptr) session.trace = trace_.borrow(session.hello.role());
  const bool traced = end.traced() && session.trace != nullptr;
  {
    const base::MutexLock lock(mutex_);
    session.traced = traced;
  }
  if (traced) trace_.received(*session.trace, push.sequence, session.coming_since, session.received);
  const base::MutexLock lock(mutex_);
  take_push(session, push, end);
}

void Server::take_push(Session& session, const Push& push, const wire::PushEnd& end) {
  if (job_.release(session.id)) settle();  // an incomplete snapshot
  const double since = now();
  session.updates = seconds_of_updates();
  job_.spent(push.member, end.wait_seconds(), end.busy_seconds());
  const Verdict verdict = job_.push(session.id, push, session.staging, end.gradient_scale());
  wait_for(session, {Wait::decision}, [this, &session, push, since, verdict] {
    mutex_.assert_held();
    if (verdict != Verdict::accepted) return answer_push(session, push, since);
    session.updates -= apply_booked(session);
    wait_for(session, {Wait::slower}, [this, &session, push, since] {
      mutex_.assert_held();
      answer_push(session, push, since);
    });
  });
  go_on(session);
}

void Server::answer_push(Session& session, const Push& push, double since) {
  session.updates = seconds_of_updates() - session.updates;
  wire::Reply reply = job_.reply(session.id);
  tell_wait(session, reply, since);
  if (session.traced) reply.set_received_at(trace_.since_epoch(session.received));
  send_parameters(session, take_view(session), std::move(reply), push.sequence);
}

void Server::tell_wait(const Session& session, wire::Reply& reply, double since) {
  const double ended = now();
  const double waited = std::max(0.0, ended - since - session.updates);
  times_.add(Stage::wait, waited);
  // In sync the wait comes before the version is made, otherwise after.
  const double end = job_.config().sync() ? since + waited : ended;
  if (session.traced) trace_.waited(*session.trace, session.coming, end - waited, end);
  reply.set_waited_seconds(waited);
}

}  // namespace lockstep::ps
