// How a parameter server handles a push.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr std::chrono::milliseconds kRoomPoll{10};  ///< between two looks whether a View has ended

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

void Server::wait(Session& session) {
  bool made_one = false;
  for (;;) {
    carry_out(job_.orders());
    // Checked first: nobody may act for a connection that is gone.
    if (job_.gone(session.id)) throw Error("this connection was dropped");
    if (job_.over(session.id)) break;
    if (ended_) throw Error("the server ends");
    const double began = now();
    const bool another_makes_one = job_.updating();
    const bool made = make_next();
    if (!made) {
      session.asleep = true;
      if (job_.waits_for_room()) {
        session.woken.wait_for(mutex_, kRoomPoll);
      } else {
        session.woken.wait(mutex_);
      }
      session.asleep = false;
    }
    made_one = made_one || made;
    if (made || another_makes_one) session.updates += now() - began;
  }
  job_.wait(session.id, {});
  if (made_one) let_others_make();
}

void Server::wait_for(Session& session, const Waiting& what) {
  job_.wait(session.id, what);
  wait(session);
}

void Server::wait_for_parameters(Session& session, const char* what) {
  job_.wait_for_parameters(session.id, what);
  wait(session);
}

void Server::on_push(Session& session, const transport::Frame& frame) {
  if (!session.staging) {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a push");
    size_t count = 0;
    for (const wire::Range& range : job_.config().ranges()) count += range.count();
    session.staging = std::make_shared<std::vector<float>>(count);
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
  View view;
  wire::Reply reply = take_push(session, push, end, view);
  if (traced) reply.set_received_at(trace_.since_epoch(session.received));
  send_parameters(session, view, std::move(reply), push.sequence);
}

wire::Reply Server::take_push(Session& session, const Push& push, const wire::PushEnd& end, View& view) {
  const base::MutexLock lock(mutex_);
  if (job_.release(session.id)) settle();  // an incomplete snapshot
  const double since = now();
  session.updates = 0;
  job_.spent(push.member, end.wait_seconds(), end.busy_seconds());
  const Verdict verdict = job_.push(session.id, push, session.staging, end.gradient_scale());
  wait_for(session, {Wait::decision});
  if (verdict == Verdict::accepted) {
    session.updates += apply_booked(session);
    wait_for(session, {Wait::slower});
  }
  wire::Reply reply = job_.reply(session.id);
  tell_wait(session, reply, since);
  view = take_view(session);
  return reply;
}

View Server::take_view(Session& session) const {
  session.element = static_cast<Element>(job_.config().wire());
  return shard_->current();
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

void Server::send_parameters(Session& session, const View& view, wire::Reply reply, uint64_t sequence) {
  transport::Header first = header(Kind::parameters);
  first.version = view.version;
  first.sequence = sequence;
  const double began = now();
  const bool traced = sequence > 0 && session.trace != nullptr && reply.received_at() > 0;
  if (traced) reply.set_sent_at(trace_.since_epoch(began));
  static_cast<void>(send_elements(session.stream, first, view.parameters, session.element, view.hold, &reply));
  const double ended = now();
  times_.add(Stage::send, ended - began);
  if (traced) trace_.sent(*session.trace, session.hello, sequence, began, ended);
}

}  // namespace lockstep::ps
