#include <fmt/format.h>

#include "simulation/ps_server.h"

namespace lockstep::simulation {

// Streams.

Link ServerActor::link_of(ps::SessionId id) const {
  for (const auto& [link, conn] : conns_) {
    if (conn.what == Conn::data && conn.session == id) return link;
  }
  return -1;
}

void ServerActor::drop(Link link, const std::string& why) {
  world_.note(me_, [&] { return fmt::format("drops {}: {}", conns_.at(link).hello.role(), why); });
  world_.close(me_, link);
  forget(link, why);
}

void ServerActor::forget(Link link, const std::string& why) {
  const auto found = conns_.find(link);
  if (found == conns_.end()) return;
  const Conn conn = std::move(found->second);
  conns_.erase(found);
  views_.erase(link);
  if (conn.what == Conn::control) {
    peers_.remove(conn.peer);
    job_.departed(conn.hello, why, peers_, now());
  }
  if (conn.what != Conn::data) return;
  job_.release(conn.session);
  if (job_.take_booked(conn.session)) job_.applied();
  if (job_.close(conn.session)) job_.stream_ended(conn.hello, peers_, now());
}

void ServerActor::greeted(Link link, const Frame& frame) {
  Conn& conn = conns_.at(link);
  conn.hello = message_of<wire::Hello>(frame);
  conn.busy = frame.control;  // until it is claimed
  conn.what = Conn::claims;
  conn.came = now();
  claim(link);
}

void ServerActor::claim(Link link) {
  Conn& conn = conns_.at(link);
  const std::string role = conn.hello.role();
  const auto holder = peers_.other_holder(role, conn.hello.incarnation(), conn.came);
  if (holder && !has(OldFault::two_with_one_name)) {
    if (!holder->alive) return;
    const bool mistaken = !cluster_.options.twin && !cluster_.lives(std::stoull(holder->process));
    if (mistaken) world_.fail(role + " is refused for a process that is dead");
    return refuse(link, ps::RefusalKind::taken, fmt::format("{} is process {} already", role, holder->process));
  }
  if (holder && cluster_.lives(std::stoull(holder->process))) world_.fail("two processes take part as " + role);
  conn.what = conn.busy ? Conn::control : Conn::data;
  conn.busy = false;
  if (conn.what == Conn::data) {
    conn.session = job_.open(conn.hello, now());
    carry_out();
    welcome(link);
    job_.greeted(conns_.at(link).session);
    return work(link);
  }
  try {
    const std::vector<ps::Decision> missed = job_.arrived(conn.hello, now());
    welcome(link);
    for (const ps::Decision& decision : missed) {
      wire::Commit commit;
      to_wire(decision, commit);
      commit.set_generation(job_.generation());
      say(link, Frame{ps::Kind::commit}, std::move(commit));
    }
  } catch (const ps::RefusedError& error) {
    return refuse(link, error.kind(), error.what());
  }
  conn.peer = peers_.add(
      {role, conn.hello.member(), conn.hello.incarnation(), "", false, std::to_string(conn.hello.incarnation())},
      now());
}

void ServerActor::welcome(Link link) {
  wire::Welcome welcome;
  welcome.set_run("run");
  welcome.set_incarnation(incarnation_);
  job_.welcome(welcome);
  say(link, Frame{ps::Kind::welcome}, std::move(welcome));
}

void ServerActor::from_peer(Link link, const Frame& frame) {
  Conn& conn = conns_.at(link);
  peers_.heard(conn.peer, now());
  if (frame.kind == ps::Kind::notice) {
    peers_.knows_end(conn.peer);
    job_.knows_end(conn.hello.member());
  }
  const std::string role = conn.hello.role();
  if (frame.kind == ps::Kind::received && role.starts_with("ps:")) {
    job_.received(std::stoi(role.substr(3)), message_of<wire::Received>(frame));
  }
}

void ServerActor::move_on() {
  for (bool again = true; again && !over_ && !locked_;) {
    again = false;
    for (const auto& [link, conn] : conns_) {
      if (conn.what == Conn::claims) {
        const auto holder = peers_.other_holder(conn.hello.role(), conn.hello.incarnation(), conn.came);
        if (holder && !holder->alive) continue;
        claim(link);
        again = true;
        break;
      }
      if (!conn.then) continue;
      if (job_.gone(conn.session)) {
        refuse(link, ps::RefusalKind::other, "this connection was dropped");
        again = true;
        break;
      }
      if (!job_.over(conn.session)) continue;
      const auto then = std::exchange(conns_.at(link).then, nullptr);
      job_.wait(conn.session, {});
      run(link, then);
      again = true;
      break;
    }
    if (again) settle();
  }
}

void ServerActor::wait(Link link, const ps::Waiting& what, std::function<void()> then) {
  Conn& conn = conns_.at(link);
  job_.wait(conn.session, what);
  conn.then = std::move(then);
}

void ServerActor::wait_for_parameters(Link link, const char* what, std::function<void()> then) {
  Conn& conn = conns_.at(link);
  job_.wait_for_parameters(conn.session, what);
  conn.then = std::move(then);
}

void ServerActor::work(Link link) {
  const auto found = conns_.find(link);
  if (found == conns_.end() || found->second.busy || found->second.frames.empty()) return;
  Conn& conn = found->second;
  conn.busy = true;
  const FramePtr frame = std::move(conn.frames.front());
  conn.frames.pop_front();
  run(link, [&] { answer(link, frame); });
}

void ServerActor::done(Link link) {
  const auto found = conns_.find(link);
  if (found == conns_.end()) return;
  found->second.busy = false;
  work(link);
}

}  // namespace lockstep::simulation
