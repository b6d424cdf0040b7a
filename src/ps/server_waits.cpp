// How a parameter server lets the requests of a stream wait, and how it sends answers of many elements. A request that
// must wait leaves what follows in its session. Whoever changes the job wakes the sessions whose waits are over, and
// their hands go on with them.
#include <algorithm>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

using transport::Next;

Next Server::proceed(Session& session) {
  for (;;) {
    while (!session.outgoing.empty()) {
      if (session.outgoing.front()()) return Next::wait;  // until it is on its way
      session.outgoing.pop_front();
    }
    if (session.then) {
      const base::MutexLock lock(mutex_);
      go_on(session);
    }
    if (session.then) return Next::wait;
    if (session.again) {
      const transport::Frame frame = *std::exchange(session.again, std::nullopt);
      answer(session, frame);
    } else if (session.outgoing.empty()) {
      return Next::read;
    }
  }
}

bool Server::is_over(const Session& session) const {
  mutex_.assert_held();
  return session.until ? session.until() : job_.over(session.id);
}

bool Server::may_go_on(const Session& session) const {
  return ended_ || (session.id != 0 && job_.gone(session.id)) || is_over(session);
}

void Server::wake_waiting() {
  for (const Session* session : waiting_) {
    if (may_go_on(*session)) transport::wake(session->stream);
  }
  if (makes_at_once_ && !waiting_.empty()) wake_to_make();
  changed_.notify_all();
}

/// A version that could not be made when its push came: the hand of its worker makes it, or any other.
void Server::wake_to_make() {
  const std::optional<Update> next = job_.next(now());
  if (!next) return;
  const auto its = [&](const Session* session) {
    const std::vector<Contributor>& contributors = next->decision.contributors;
    return !contributors.empty() && session->hello.member() == contributors.front().member;
  };
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), its);
  transport::wake((found == waiting_.end() ? *waiting_.begin() : *found)->stream);
}

void Server::go_on(Session& session) {
  waiting_.erase(&session);
  int made = 0;
  bool held_up = false;  // whether updates waited for an answer of this call
  while (session.then) {
    carry_out(job_.orders());
    // Checked first: nobody may act for a connection that is gone.
    if (session.id != 0 && job_.gone(session.id)) throw Error("this connection was dropped");
    if (is_over(session)) {
      held_up = held_up || job_.waits_between(session.id);
      if (session.id != 0) job_.wait(session.id, {});
      session.until = nullptr;
      const std::function<void()> then = std::exchange(session.then, nullptr);
      then();
      continue;
    }
    if (ended_) throw Error("the server ends");
    if (makes_at_once_ && made < kMostAtOnce && make_next()) {
      ++made;
      continue;
    }
    waiting_.insert(&session);
    if (made == kMostAtOnce) transport::wake(session.stream);  // after what else its hand has to do
    if (!makes_at_once_) let_others_make();
    return;
  }
  if (held_up) settle();
}

void Server::wait_for(Session& session, const Waiting& what, std::function<void()> then) {
  job_.wait(session.id, what);
  session.then = std::move(then);
}

void Server::wait_for_parameters(Session& session, const char* what, std::function<void()> then) {
  job_.wait_for_parameters(session.id, what);
  session.then = std::move(then);
}

void Server::wait_until(Session& session, std::function<bool()> until, std::function<void()> then) {
  session.until = std::move(until);
  session.then = std::move(then);
}

View Server::take_view(Session& session) const {
  session.element = static_cast<Element>(job_.config().wire());
  return shard_->current();
}

void Server::send_later(Session& session, const transport::Header& header, std::span<const float> values,
                        std::shared_ptr<const void> hold, std::optional<std::string> last) {
  const Element element = static_cast<Kind>(header.kind) == Kind::parameters ? session.element : Element::kFloat32;
  const auto sender = std::make_shared<ElementSender>(header, values, element, std::move(hold), std::move(last));
  session.outgoing.emplace_back([&session, sender] {
    if (sender->done()) return false;
    if (!sender->send_next(session.stream)) throw Error("this connection is gone");
    return true;
  });
}

void Server::send_parameters(Session& session, const View& view, wire::Reply reply, uint64_t sequence) {
  transport::Header first = header(Kind::parameters);
  first.version = view.version;
  first.sequence = sequence;
  const double began = now();
  const bool traced = sequence > 0 && session.trace != nullptr && reply.received_at() > 0;
  if (traced) reply.set_sent_at(trace_.since_epoch(began));
  send_later(session, first, view.parameters, view.hold, reply.SerializeAsString());
  session.outgoing.emplace_back([this, &session, began, traced, sequence] {
    const double ended = now();
    times_.add(Stage::send, ended - began);
    if (traced) trace_.sent(*session.trace, session.hello, sequence, began, ended);
    return false;
  });
}

void Server::send_state(Session& session, const View& view, const wire::Snapshot& end) {
  transport::Header part = header(Kind::state);
  part.version = view.version;
  send_later(session, part, view.parameters, view.hold, std::nullopt);
  for (size_t i = 0; i < view.slots.size(); ++i) {
    part.extra = i + 1;
    send_later(session, part, view.slots[i], view.hold, std::nullopt);
  }
  session.outgoing.emplace_back([&session, end, version = view.version] {
    transport::Header last = header(Kind::snapshot_end);
    last.version = version;
    static_cast<void>(send(session.stream, last, end));
    return false;
  });
}

}  // namespace lockstep::ps
