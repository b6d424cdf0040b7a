#include <fmt/format.h>

#include "simulation/ps_server.h"
#include "wire/liveness.h"

namespace lockstep::simulation {
namespace {

constexpr double kHeartbeat = std::chrono::duration<double>(wire::kHeartbeat).count();

}  // namespace

// ps:0.

void ServerActor::lost_ps0(const std::string& why) {
  ps0_ = -1;
  if (!welcomed_by_ps0_) job_.ps0_unreachable(why, now());
  welcomed_by_ps0_ = false;
  job_.ps0_lost(now());
  if (!job_.finishing()) later(0.2, [this] { follow(); });
}

void ServerActor::from_ps0(const Frame& frame) {
  job_.heard_of_ps0(now());
  switch (frame.kind) {
    case ps::Kind::refuse:
      return world_.fail(fmt::format("ps:0 refused ps:{}: {}", index_, frame.text));
    case ps::Kind::welcome:
      welcomed_by_ps0_ = true;
      return job_.ps0_welcomed();
    case ps::Kind::heartbeat:
      return say(ps0_, Frame{ps::Kind::heartbeat});
    case ps::Kind::commit:
      if (has(OldFault::followers_do_not_ask)) return;
      return job_.announced(message_of<wire::Commit>(frame), now());
    case ps::Kind::notice:
      return finish_training();
    default:
      return;
  }
}

// Time.

void ServerActor::tick() {
  if (over_) return;
  const bool finishing = job_.finishing();
  if (locked_) {
    blocked_.push_back([this] { tick(); });
    return;
  }
  cluster_.looked(me_);
  guarded([this] {
    job_.expire(now());
    settle();
    job_.watch(peers_, cluster_.asks_to_end(), now());
    settle();
  });
  if (over_) return;
  check_waits();
  heartbeats(finishing);
  if (finishing && job_.may_leave(peers_, now())) return leave();
  if (!finishing || !ticks_fast_) {
    ticks_fast_ = finishing;
    world_.after(me_, finishing ? kHeartbeat / 10 : kHeartbeat, [this] { tick(); });
  } else {
    world_.after(me_, kHeartbeat / 10, [this] { tick(); });
  }
}

void ServerActor::heartbeats(bool finishing) {
  guarded([&] {
    wire::Notice notice;
    notice.set_ended(true);
    if (job_.coordinator() != nullptr) notice.set_stop(static_cast<uint32_t>(job_.coordinator()->stopped()));
    for (const auto& [link, conn] : conns_) {
      if (conn.what != Conn::control) continue;
      if (world_.now() >= next_heartbeat_) say(link, Frame{ps::Kind::heartbeat});
      if (finishing) say(link, Frame{ps::Kind::notice}, notice);
    }
    if (world_.now() >= next_heartbeat_) next_heartbeat_ = world_.now() + kHeartbeat * 0.99;
    for (const ps::Peers::Id id : peers_.give_up_silent(now(), job_.awaited())) {
      const std::string why = peers_.why(id);
      for (const auto& [link, conn] : conns_) {
        if (conn.what != Conn::control || conn.peer != id) continue;
        drop(link, why);
        break;
      }
    }
  });
}

void ServerActor::check_waits() {
  for (const auto& [link, conn] : conns_) {
    if (!conn.then || job_.gone(conn.session) || job_.over(conn.session)) continue;
    const std::string reason = job_.reason(conn.session);
    const std::string role = conn.hello.role();
    if (reason.empty()) world_.fail(role + " waits for something without a name");
    world_.note(me_, [&] { return fmt::format("{} waits for {}", role, reason); });
  }
}

void ServerActor::leave() {
  if (over_) return;
  over_ = true;
  if (job_.finishing() && job_.initialised()) cluster_.truth.ended(index_, {job_.generation(), files_.version});
  cluster_.left.insert(me_);
  world_.disk(me_).remove("state");
  world_.exit(me_);
}

}  // namespace lockstep::simulation
